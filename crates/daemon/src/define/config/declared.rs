//! Reads a file that declares sessions: like `config.toml`, but values are kept as written.

use super::ConfigError;
use super::node;
use super::reading::broken;
use super::value::{TextVisitor, wrong};
use pinfold_api::units;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, SeqAccess, Visitor};
use std::fmt::{self, Formatter};
use toml::de::DeTable;

pub(crate) use super::value::{Flag, Quoted};

/// Reads the text of a file.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    let root = DeTable::parse(text).map_err(|error| broken(text, &error))?;
    node::read(text, root.get_ref())
}

/// A duration, as written.
#[derive(Debug)]
pub(crate) struct SpanText(pub(crate) String);

/// A number of bytes, as written.
#[derive(Debug)]
pub(crate) struct SizeText(pub(crate) String);

/// An amount of money, as written.
#[derive(Debug)]
pub(crate) struct MoneyText(pub(crate) String);

/// A list of texts.
#[derive(Debug)]
pub(crate) struct Texts(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for SpanText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SpanText, D::Error> {
        let text = from.deserialize_any(TextVisitor(
            "is a duration in quotes, as in \"250ms\", \"10s\", \"5m\", \"2h\", \"7d\"",
        ))?;
        let known = units::duration(&text).map_err(|error| wrong(&text, &format!("is a duration: {error}")));
        known.map(|_| SpanText(text))
    }
}

impl<'de> Deserialize<'de> for MoneyText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<MoneyText, D::Error> {
        let text =
            from.deserialize_any(TextVisitor("is an amount in quotes, as in \"5USD\" or \"0.50USD\""))?;
        let known = units::money(&text).map_err(|error| wrong(&text, &format!("is an amount: {error}")));
        known.map(|_| MoneyText(text))
    }
}

impl<'de> Deserialize<'de> for SizeText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SizeText, D::Error> {
        let text = from.deserialize_any(TextVisitor("is a size in quotes, as in \"512M\" or \"2G\""))?;
        let known = units::size(&text).map_err(|error| wrong(&text, &format!("is a size: {error}")));
        known.map(|_| SizeText(text))
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Texts, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Texts;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("is a list of texts, as in [\"sleep\", \"10\"]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(Quoted(text)) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        from.deserialize_any(Reading)
    }
}
