//! One request: an address with its braces filled, the query, and the body.

use super::description::Method;
use super::kind::Endpoint;
use serde::Serialize;
use serde_json::Value;
use std::marker::PhantomData;

/// A request to an endpoint. Each endpoint has a function `call` that makes one: it takes what the endpoint
/// wants, and nothing else.
#[derive(Debug, Clone)]
pub struct Call<E> {
    address: String,
    /// An error is reported when the request is sent: only a path that is not UTF-8 can cause one.
    body: Result<Option<Vec<u8>>, String>,
    endpoint: PhantomData<E>,
}

impl<E: Endpoint> Call<E> {
    /// Fills the braces of the address, in order.
    pub(super) fn to(names: &[&str]) -> Call<E> {
        let mut names = names.iter();
        let mut address = String::with_capacity(E::DESCRIPTION.path.len() + 32);
        for part in E::DESCRIPTION.path.split('/').skip(1) {
            address.push('/');
            match part.starts_with('{') {
                true => names.next().into_iter().for_each(|name| encode(name, &mut address)),
                false => address.push_str(part),
            }
        }
        // A daemon of an earlier version expects a body wherever there may be one.
        let body = (E::DESCRIPTION.method == Method::Post).then(|| b"{}".to_vec());
        Call { address, body: Ok(body), endpoint: PhantomData }
    }

    /// Adds the query: one parameter for each field that is set.
    pub(super) fn asking<Q: Serialize>(mut self, query: &Q) -> Call<E> {
        let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return self };
        let mut separator = '?';
        for (name, value) in &fields {
            let Some(text) = parameter(value) else { continue };
            self.address.push(separator);
            separator = '&';
            self.address.push_str(name);
            self.address.push('=');
            encode(&text, &mut self.address);
        }
        self
    }

    /// Sets the body.
    pub(super) fn saying<B: Serialize>(self, body: &B) -> Call<E> {
        let body = serde_json::to_vec(body).map(Some).map_err(|error| error.to_string());
        Call { body, ..self }
    }

    /// Returns the address with its query.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the body as JSON.
    pub(crate) fn body(&self) -> serde_json::Result<Option<&[u8]>> {
        match &self.body {
            Ok(body) => Ok(body.as_deref()),
            Err(text) => Err(serde::ser::Error::custom(text)),
        }
    }
}

fn parameter(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

/// Percent-encodes what is not allowed in a path or a query.
fn encode(text: &str, into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
            into.extend(['%', high, low]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::endpoint;
    use crate::query;
    use crate::request;

    #[test]
    fn braces_are_filled_and_what_may_not_stand_in_a_path_is_encoded() {
        let call = endpoint::RetryMessage::call("a/b ?", "é");
        assert_eq!(call.address(), "/v1/sessions/a%2Fb%20%3F/messages/%C3%A9/retry");
        assert_eq!(endpoint::Show::call("api").address(), "/v1/sessions/api");
        assert_eq!(endpoint::Ping::call().address(), "/v1/ping");
    }

    #[test]
    fn what_is_not_asked_is_left_out() {
        let all = query::Sessions { all: true, tag: Some("a&b".into()), ..query::Sessions::default() };
        assert_eq!(
            endpoint::Table::call(&all).address(),
            "/v1/table?all=true&brief=false&known=false&tag=a%26b"
        );
        assert_eq!(endpoint::Locks::call(&query::Locks::default()).address(), "/v1/locks");
        let ever = query::Patience { wait: Some(String::new()) };
        assert_eq!(endpoint::ShowMessage::call("s", "m", &ever).address(), "/v1/sessions/s/messages/m?wait=");
    }

    #[test]
    fn only_what_says_something_has_a_body() {
        assert_eq!(endpoint::Show::call("s").body().unwrap(), None);
        assert_eq!(endpoint::Start::call("s").body().unwrap(), Some(&b"{}"[..]));
        let stop = request::Stop { timeout: Some("1s".into()) };
        assert_eq!(endpoint::Stop::call("s", &stop).body().unwrap(), Some(&br#"{"timeout":"1s"}"#[..]));
    }
}
