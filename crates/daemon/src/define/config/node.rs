//! Reads the text of a file with serde and words its errors for people, with the line.
//!
//! serde's own errors name types (`invalid type: integer, expected u32`) and lose the place of an unknown
//! key. So the tree that `toml` makes is read by a deserializer of ours, with an error of ours: what a type
//! [expects](serde::de::Visitor::expecting) is the end of a sentence that begins with its key.

use super::ConfigError;
use super::reading::{line_of, nearest};
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt::Display;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

/// Reads a whole file as `T`.
pub(super) fn read<T: de::DeserializeOwned>(text: &str, root: &DeTable<'_>) -> Result<T, ConfigError> {
    T::deserialize(Table(root)).map_err(|fault| fault.in_file(text))
}

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct ConfigFault {
    span: Option<Range<usize>>,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    /// What the value of a key should be.
    OfKey(String),
    /// A whole sentence.
    Said(String),
}

impl ConfigFault {
    fn new(problem: Problem) -> ConfigFault {
        ConfigFault { span: None, problem }
    }

    /// Sets the place, unless a more exact one is known.
    fn at(mut self, span: &Range<usize>) -> ConfigFault {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    fn of_key(mut self, key: &str) -> ConfigFault {
        if let Problem::OfKey(problem) = self.problem {
            self.problem = Problem::Said(format!("`{key}` {problem}"));
        }
        self
    }

    fn in_file(self, text: &str) -> ConfigError {
        let (Problem::OfKey(problem) | Problem::Said(problem)) = self.problem;
        ConfigError { line: line_of(text, self.span.map_or(0, |span| span.start)), problem }
    }
}

impl Display for ConfigFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Problem::OfKey(problem) | Problem::Said(problem)) = &self.problem;
        f.write_str(problem)
    }
}

impl std::error::Error for ConfigFault {}

impl de::Error for ConfigFault {
    fn custom<T: Display>(said: T) -> ConfigFault {
        ConfigFault::new(Problem::Said(said.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> ConfigFault {
        ConfigFault::new(Problem::OfKey(expected.to_string()))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> ConfigFault {
        ConfigFault::new(Problem::OfKey(expected.to_string()))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> ConfigFault {
        one_of(expected)
    }

    /// A number of `[policy]` found outside that table is told where it belongs.
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> ConfigFault {
        let misplaced = expected.contains(&"policy") && super::policy::KEYS.contains(&field);
        let nearest = if misplaced { format!("policy.{field}") } else { nearest(field, expected).to_owned() };
        ConfigFault::new(Problem::Said(format!("there is no key `{field}`; the nearest one is `{nearest}`")))
    }
}

/// A value, and its key if it has one.
struct Node<'t, 'i> {
    value: &'t Spanned<DeValue<'i>>,
    /// A table is at its key: its own span may be that of its first row.
    key: Option<&'t Spanned<DeString<'i>>>,
}

impl Node<'_, '_> {
    fn span(&self) -> Range<usize> {
        match self.key.filter(|_| self.value.get_ref().is_table()) {
            Some(key) => key.span(),
            None => self.value.span(),
        }
    }

    fn not_a_table(&self) -> ConfigFault {
        let span = self.key.map_or(self.value.span(), Spanned::span);
        ConfigFault::new(Problem::Said("a table is expected here".into())).at(&span)
    }
}

impl<'de> Deserializer<'de> for Node<'_, '_> {
    type Error = ConfigFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        let span = self.span();
        let read = match self.value.get_ref() {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(number) => integer(number, visitor),
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(de::Error::invalid_type(Unexpected::Other("a number"), &visitor)),
            },
            DeValue::Boolean(flag) => visitor.visit_bool(*flag),
            DeValue::Datetime(_) => Err(de::Error::invalid_type(Unexpected::Other("a date"), &visitor)),
            DeValue::Array(list) => visitor.visit_seq(List(list.iter())),
            DeValue::Table(table) => Table(table).deserialize_any(visitor),
        };
        read.map_err(|fault| fault.at(&span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &str,
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        if self.value.get_ref().is_table() { self.deserialize_any(visitor) } else { Err(self.not_a_table()) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        self.deserialize_map(visitor)
    }

    /// One of a few words.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        let span = self.span();
        let DeValue::String(text) = self.value.get_ref() else { return Err(one_of(words).at(&span)) };
        let word: StrDeserializer<'_, ConfigFault> = text.as_ref().into_deserializer();
        visitor.visit_enum(word).map_err(|fault| fault.at(&span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct identifier ignored_any
    }
}

fn one_of(words: &[&str]) -> ConfigFault {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    ConfigFault::new(Problem::OfKey(format!("is {}", words.join(" or "))))
}

fn integer<'de, V: Visitor<'de>>(number: &DeInteger<'_>, visitor: V) -> Result<V::Value, ConfigFault> {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(number) => visitor.visit_i64(number),
        Err(_) => Err(de::Error::invalid_type(Unexpected::Other("a large number"), &visitor)),
    }
}

struct Table<'t, 'i>(&'t DeTable<'i>);

impl<'de> Deserializer<'de> for Table<'_, '_> {
    type Error = ConfigFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        visitor.visit_map(Rows { rows: self.0.iter(), row: None })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

type Row<'t, 'i> = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>);

struct Rows<'t, 'i, I: Iterator<Item = Row<'t, 'i>>> {
    rows: I,
    row: Option<Row<'t, 'i>>,
}

impl<'de, 't, 'i, I: Iterator<Item = Row<'t, 'i>>> MapAccess<'de> for Rows<'t, 'i, I> {
    type Error = ConfigFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConfigFault> {
        self.row = self.rows.next();
        let Some((key, _)) = self.row else { return Ok(None) };
        let name: StrDeserializer<'_, ConfigFault> = key.get_ref().as_ref().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|fault| fault.at(&key.span()))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ConfigFault> {
        let (key, value) = self.row.take().expect("a key comes before its value");
        let node = Node { value, key: Some(key) };
        let span = node.span();
        seed.deserialize(node).map_err(|fault| fault.at(&span).of_key(key.get_ref()))
    }
}

struct List<'t, 'i>(std::slice::Iter<'t, Spanned<DeValue<'i>>>);

impl<'de> SeqAccess<'de> for List<'_, '_> {
    type Error = ConfigFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ConfigFault> {
        let Some(value) = self.0.next() else { return Ok(None) };
        let span = value.span();
        seed.deserialize(Node { value, key: None }).map(Some).map_err(|fault| fault.at(&span))
    }
}
