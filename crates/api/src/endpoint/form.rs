//! How objects are put into an answer.

use super::schema::{Describe, schema_of};
use schemars::JsonSchema;
use std::marker::PhantomData;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON value.
    Whole,
    /// One object per line, for as long as it goes on.
    Lines,
    /// Server-sent events, or an array.
    Events,
    /// Plain text.
    Text,
}

/// What an endpoint answers: objects in a form.
pub trait Answer {
    /// The form of the answer.
    const FORM: Form;
    /// Describes one object.
    const OBJECT: Describe;
}

/// One JSON value.
#[derive(Debug)]
pub struct Whole<T>(PhantomData<T>);

/// One object per line.
#[derive(Debug)]
pub struct Lines<T>(PhantomData<T>);

/// Server-sent events, or an array of the same objects.
#[derive(Debug)]
pub struct Events<T>(PhantomData<T>);

/// Plain text.
#[derive(Debug)]
pub struct Text;

impl<T: JsonSchema> Answer for Whole<T> {
    const FORM: Form = Form::Whole;
    const OBJECT: Describe = schema_of::<T>;
}

impl<T: JsonSchema> Answer for Lines<T> {
    const FORM: Form = Form::Lines;
    const OBJECT: Describe = schema_of::<T>;
}

impl<T: JsonSchema> Answer for Events<T> {
    const FORM: Form = Form::Events;
    const OBJECT: Describe = schema_of::<T>;
}

impl Answer for Text {
    const FORM: Form = Form::Text;
    const OBJECT: Describe = schema_of::<String>;
}

/// An answer that can be read one object at a time.
pub trait List {
    /// The type of the objects.
    type Item;
}

impl<T> List for Whole<Vec<T>> {
    type Item = T;
}

impl<T> List for Events<T> {
    type Item = T;
}
