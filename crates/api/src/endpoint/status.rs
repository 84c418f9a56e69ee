//! The statuses of errors: each says what kind of mistake it is, and whose.

/// The status of an error, as in the description of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorStatus {
    /// The HTTP status code.
    pub code: u16,
    /// Its name in the description.
    pub name: &'static str,
    /// When it is used.
    pub when: &'static str,
}

/// Every error status that an address may answer with. Something that is not a request to an address at all
/// gets others: 405, 414 and 431.
pub const STATUSES: &[ErrorStatus] = &[
    status(400, "Unreadable", "the request is not JSON, is cut short, or asks for what does not exist"),
    status(403, "NotPermitted", "who asks may not: `not_permitted`"),
    status(404, "NotFound", "no such session, message or run: `not_found`"),
    status(408, "Timeout", "the time is up, or the body did not come in time: `timeout`"),
    status(
        409,
        "Conflict",
        "`busy`, with the holder where one is known; `exists`; `archived`; or `failed`: the session's state does not allow it",
    ),
    status(413, "TooLarge", "the body is too large"),
    status(422, "BadValue", "a value that cannot be, or a field that does not exist: `usage`, `bad_config`"),
    status(429, "TooMany", "the client has as many as it may have: `busy`"),
    status(500, "Failed", "the system failed: `failed`, `damaged`"),
    status(503, "Unavailable", "the daemon is going down, or has no place left: `unavailable`"),
];

const fn status(code: u16, name: &'static str, when: &'static str) -> ErrorStatus {
    ErrorStatus { code, name, when }
}

#[cfg(test)]
mod tests {
    use super::STATUSES;
    use crate::endpoint::Address;
    use crate::error::ErrorKind;

    fn is_known(code: u16) -> bool {
        STATUSES.iter().any(|status| status.code == code)
    }

    #[test]
    fn every_kind_of_error_has_a_status_that_is_told() {
        for kind in ErrorKind::ALL {
            assert!(is_known(kind.status()), "{kind:?}");
        }
    }

    #[test]
    fn every_status_of_an_address_is_told_once() {
        for address in Address::ALL {
            let statuses = address.description().statuses();
            assert!(statuses.iter().all(|code| is_known(*code)), "{address:?}: {statuses:?}");
            assert!(statuses.is_sorted_by(|one, next| one < next), "{address:?}: {statuses:?}");
        }
    }
}
