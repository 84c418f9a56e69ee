//! How objects are put into an answer.

use super::schema::{Describe, schema_of};
use schemars::JsonSchema;
use std::marker::PhantomData;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
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
pub trait EndpointAnswer {
    /// The form of the answer.
    const FORM: AnswerForm;
    /// Describes one object.
    const OBJECT: Describe;
}

/// One JSON value.
#[derive(Debug)]
pub struct WholeAnswer<T>(PhantomData<T>);

/// One object per line.
#[derive(Debug)]
pub struct LinesAnswer<T>(PhantomData<T>);

/// Server-sent events, or an array of the same objects.
#[derive(Debug)]
pub struct EventsAnswer<T>(PhantomData<T>);

/// Plain text.
#[derive(Debug)]
pub struct TextAnswer;

impl<T: JsonSchema> EndpointAnswer for WholeAnswer<T> {
    const FORM: AnswerForm = AnswerForm::Whole;
    const OBJECT: Describe = schema_of::<T>;
}

impl<T: JsonSchema> EndpointAnswer for LinesAnswer<T> {
    const FORM: AnswerForm = AnswerForm::Lines;
    const OBJECT: Describe = schema_of::<T>;
}

impl<T: JsonSchema> EndpointAnswer for EventsAnswer<T> {
    const FORM: AnswerForm = AnswerForm::Events;
    const OBJECT: Describe = schema_of::<T>;
}

impl EndpointAnswer for TextAnswer {
    const FORM: AnswerForm = AnswerForm::Text;
    const OBJECT: Describe = schema_of::<String>;
}

/// An answer that can be read one object at a time.
pub trait ListAnswer {
    /// The type of the objects.
    type Item;
}

impl<T> ListAnswer for WholeAnswer<Vec<T>> {
    type Item = T;
}

impl<T> ListAnswer for EventsAnswer<T> {
    type Item = T;
}
