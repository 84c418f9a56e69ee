//! The forms of values: each type says what it expects if a file has something else.

use crate::define::preset::of_word;
use pinfold_api::units;
use pinfold_core::usage::Money;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use std::fmt::{self, Formatter};
use std::marker::PhantomData;
use std::time::Duration;

/// A reading costs about 10 µs: at this interval one session alone takes 0.1 ms/s.
const SHORTEST_PACE: Duration = Duration::from_millis(100);

/// The error for a value of the right kind that is wrong.
pub(super) fn wrong<E: Error>(found: &str, problem: &str) -> E {
    E::invalid_value(Unexpected::Str(found), &problem)
}

/// A non-negative number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Count(pub(super) u32);

/// A duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span(pub(super) Duration);

/// An interval between two readings, which cannot be zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace(pub(super) Duration);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ByteSize(pub(super) u64);

/// An amount of money.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Amount(pub(super) Money);

/// A fraction of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part(pub(super) f64);

/// True or false.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Flag(pub(super) bool);

/// Any text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quoted(pub(crate) String);

/// Names of variables.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Names(pub(super) Vec<String>);

/// A list of texts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextList(pub(super) Vec<String>);

/// One of a few words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Word<T>(pub(super) T);

/// A type with a table of words.
pub(super) trait WordTable: Copy + 'static {
    const WORDS: &'static [(&'static str, Self)];

    /// Writes what the value of its key should be.
    fn expecting(f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("is one of ")?;
        for (at, (word, _)) in Self::WORDS.iter().enumerate() {
            write!(f, "{}\"{word}\"", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Count, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = Count;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("is a number, 0 or more")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Count, E> {
                let count = u32::try_from(number).map(Count);
                count.map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
            }
        }
        from.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        let expected = "is a duration in quotes, as in \"250ms\", \"10s\", \"5m\", \"2h\", \"7d\"";
        let text = from.deserialize_any(TextVisitor(expected))?;
        units::duration(&text).map(Span).map_err(|error| wrong(&text, &format!("is a duration: {error}")))
    }
}

impl<'de> Deserialize<'de> for Pace {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Pace, D::Error> {
        let Span(pace) = Span::deserialize(from)?;
        if pace < SHORTEST_PACE {
            return Err(wrong("", &format!("is at least \"{}ms\"", SHORTEST_PACE.as_millis())));
        }
        Ok(Pace(pace))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ByteSize, D::Error> {
        let text = from.deserialize_any(TextVisitor("is a size in quotes, as in \"512M\" or \"2G\""))?;
        units::size(&text).map(ByteSize).map_err(|error| wrong(&text, &format!("is a size: {error}")))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Amount, D::Error> {
        let text =
            from.deserialize_any(TextVisitor("is an amount in quotes, as in \"5USD\" or \"0.50USD\""))?;
        let amount = units::money(&text).map(|amount| Amount(Money(amount)));
        amount.map_err(|error| wrong(&text, &format!("is an amount: {error}")))
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Part, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = Part;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("is a part of one, from 0.0 to 1.0")
            }

            fn visit_f64<E: Error>(self, part: f64) -> Result<Part, E> {
                let fits = (0.0..=1.0).contains(&part);
                if fits { Ok(Part(part)) } else { Err(E::invalid_value(Unexpected::Float(part), &self)) }
            }

            fn visit_i64<E: Error>(self, part: i64) -> Result<Part, E> {
                let whole = i32::try_from(part).map_or(f64::NAN, f64::from);
                self.visit_f64(whole)
            }
        }
        from.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Flag, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = Flag;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("is true or false")
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<Flag, E> {
                Ok(Flag(flag))
            }
        }
        from.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for Quoted {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Quoted, D::Error> {
        from.deserialize_any(TextVisitor("is a text in quotes")).map(Quoted)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Names, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Names;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("is a list of names of variables, as in [\"API_KEY\", \"MY_*\"]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some(Quoted(name)) = list.next_element()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        from.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for TextList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TextList, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = TextList;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("is a list of texts, as in [\"/clear\", \"/review *\"]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TextList, A::Error> {
                let mut texts = Vec::new();
                while let Some(Quoted(text)) = list.next_element()? {
                    texts.push(text);
                }
                Ok(TextList(texts))
            }
        }
        from.deserialize_any(Reading)
    }
}

impl<'de, T: WordTable> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Word<T>, D::Error> {
        struct Reading<T>(PhantomData<T>);
        impl<T: WordTable> Visitor<'_> for Reading<T> {
            type Value = Word<T>;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                T::expecting(f)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Word<T>, E> {
                let known = of_word(T::WORDS, word).map(Word);
                known.ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
            }
        }
        from.deserialize_any(Reading(PhantomData))
    }
}

/// Reads a text; its own text says what is expected.
pub(super) struct TextVisitor(pub(super) &'static str);

impl Visitor<'_> for TextVisitor {
    type Value = String;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

macro_rules! held {
    ($($Type:ident holds $Inner:ty,)+) => {$(
        impl From<$Type> for $Inner {
            fn from(value: $Type) -> $Inner {
                value.0
            }
        }
    )+};
}

held! {
    Count holds u32,
    Span holds Duration,
    Pace holds Duration,
    ByteSize holds u64,
    Part holds f64,
    Flag holds bool,
}
