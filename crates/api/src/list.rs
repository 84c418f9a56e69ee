//! Lists of any length, one object at a time: neither side has to have a whole list in memory.

use crate::client::{Client, ClientError};
use crate::endpoint::{Call, Endpoint, ListAnswer};
use crate::http::Rest;
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::io::{self, BufReader, Write};
use std::marker::PhantomData;

/// How much of a list is passed on at once.
const PIECE: usize = 64 << 10;

impl Client {
    /// Asks for a list and hands over one object after the other, as they come. Returns what the head says about it.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses. What was handed over before
    /// remains valid.
    pub fn each<T, E>(&self, call: &Call<E>, take: impl FnMut(T)) -> Result<Rest, ClientError>
    where
        T: DeserializeOwned,
        E: Endpoint,
        E::Answer: ListAnswer<Item = T>,
    {
        let mut body = self.send(call)?;
        let rest = std::mem::take(&mut body.rest);
        let mut text = serde_json::Deserializer::from_reader(BufReader::new(body));
        let read = text.deserialize_seq(Each(take, PhantomData)).and_then(|()| text.end());
        read.map(|()| rest).map_err(broken_or_garbled)
    }

    /// Asks for a list and passes its text on, as it comes. Returns what the head says about it.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses. A writer that takes no more
    /// is not an error.
    pub fn pass_on<E: Endpoint>(&self, call: &Call<E>, to: &mut impl Write) -> Result<Rest, ClientError> {
        let mut body = self.send(call)?;
        let rest = std::mem::take(&mut body.rest);
        let mut piece = vec![0; PIECE];
        loop {
            let read = io::Read::read(&mut body, &mut piece).map_err(ClientError::from)?;
            if read == 0 || to.write_all(&piece[..read]).is_err() {
                return Ok(rest);
            }
        }
    }
}

fn broken_or_garbled(error: serde_json::Error) -> ClientError {
    if error.is_io() { ClientError::from(std::io::Error::from(error)) } else { ClientError::Garbled(error) }
}

/// Takes the elements of an array as they are read.
struct Each<T, F>(F, PhantomData<T>);

impl<'de, T: DeserializeOwned, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<(), A::Error> {
        while let Some(element) = array.next_element()? {
            self.0(element);
        }
        Ok(())
    }
}
