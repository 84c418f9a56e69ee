//! Every address of the API, once. The client calls them, the daemon serves them, the OpenAPI document lists them.

use super::call::Call;
use super::description::{EndpointDescription, Method};
use super::form::{EndpointAnswer, EventsAnswer, LinesAnswer, TextAnswer, WholeAnswer};
use super::kind::Endpoint;
use super::schema::{Describe, schema_of};
use crate::feed::FeedEvent;
use crate::{object, query, request};
use serde_json::Value;

/// The query or body of an endpoint that takes none; it has no values.
#[derive(Debug, Clone)]
pub enum Nothing {}

macro_rules! described {
    () => {
        None
    };
    ($type:ty) => {
        Some(schema_of::<$type> as Describe)
    };
}

macro_rules! or_nothing {
    () => {
        Nothing
    };
    ($type:ty) => {
        $type
    };
}

/// `NAME: METHOD "path" (the names in braces) ?query {body} => answer | its own errors`. The comment above an
/// endpoint is its summary.
macro_rules! endpoints {
    ($(
        #[doc = $summary:literal]
        $Name:ident: $Method:ident $path:literal $(($($name:ident),+))? $(? $query:ty)? $({ $body:ty })? => $answer:ty
            $(| $($error:literal)+)?;
    )+) => {
        /// The endpoints. It is matched without `_`: a new one stops the build where it has to be served.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "they are those of the endpoints")]
        pub enum Address { $($Name),+ }

        impl Address {
            /// All endpoints.
            pub const ALL: &[Address] = &[$(Address::$Name),+];

            /// Returns the endpoint's description.
            #[must_use]
            pub const fn description(self) -> EndpointDescription {
                match self { $(Address::$Name => $Name::DESCRIPTION),+ }
            }
        }

        $(
            #[doc = $summary]
            #[derive(Debug, Clone)]
            pub enum $Name {}

            impl Endpoint for $Name {
                type Query = or_nothing!($($query)?);
                type Body = or_nothing!($($body)?);
                type Answer = $answer;
                const DESCRIPTION: EndpointDescription = EndpointDescription {
                    method: Method::$Method,
                    path: $path,
                    summary: $summary.trim_ascii(),
                    query: described!($($query)?),
                    body: described!($($body)?),
                    form: <$answer as EndpointAnswer>::FORM,
                    answer: <$answer as EndpointAnswer>::OBJECT,
                    errors: &[$($($error),+)?],
                };
            }

            impl $Name {
                /// Makes a request to it.
                #[must_use]
                pub fn call($($($name: &str,)+)? $(query: &$query,)? $(body: &$body)?) -> Call<$Name> {
                    const NAMES: &[&str] = &[$($(stringify!($name)),+)?];
                    const { assert!(braces($path) == NAMES.len(), "as many names as braces") };
                    Call::to(&[$($($name),+)?])$(.asking::<$query>(query))?$(.saying::<$body>(body))?
                }
            }
        )+
    };
}

const fn braces(path: &str) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < path.len() {
        count += (path.as_bytes()[at] == b'{') as usize;
        at += 1;
    }
    count
}

endpoints! {
    /// A sign of life, within 5 s; while it starts, how far that has come
    Ping: Get "/v1/ping" => WholeAnswer<object::Ping>;
    /// The daemon
    Status: Get "/v1/status" => WholeAnswer<object::Status>;
    /// Metrics, as Prometheus reads them
    MetricsText: Get "/metrics" => TextAnswer;
    /// Metrics
    Metrics: Get "/v1/metrics" => WholeAnswer<Vec<object::Metric>>;
    /// End the daemon; returns when it has nothing left to do
    Down: Post "/v1/daemon/down" { request::Down } => WholeAnswer<object::WentDown>;
    /// Copy the database to a new file
    Backup: Post "/v1/daemon/backup" { request::Backup } => WholeAnswer<object::Backup> | 409;
    /// Take what verbs wrote down into the events
    TakeAudit: Post "/v1/daemon/audit" => WholeAnswer<Value>;
    /// Audit records: server-sent events, or an array with follow=false
    ListEvents: Get "/v1/events" ? query::Events => EventsAnswer<object::Event> | 404;
    /// All sessions, then every change of one: server-sent events `snapshot`, `session`, `removed`, `live`
    Feed: Get "/v1/feed" ? query::Feed => EventsAnswer<FeedEvent> | 422;
    /// This description of the API
    OpenApi: Get "/v1/openapi.json" => WholeAnswer<Value>;

    /// The sessions
    Sessions: Get "/v1/sessions" ? query::Sessions => WholeAnswer<Vec<object::Session>> | 422;
    /// The sessions as `pinfold ls` shows them, a row each
    Table: Get "/v1/table" ? query::Sessions => WholeAnswer<Vec<object::Row<'static>>> | 422;
    /// Create a session; returns after the first attempt to start it
    New: Post "/v1/sessions" { request::NewSession } => WholeAnswer<object::Session> | 404 409;
    /// One session
    Show: Get "/v1/sessions/{session}" (session) => WholeAnswer<object::Session>;
    /// A person has looked at what it did; from inside a run it changes nothing
    Look: Post "/v1/sessions/{session}/look" (session) => WholeAnswer<object::Session>;
    /// Delete an archived session for good
    Remove: Delete "/v1/sessions/{session}" (session) ? query::AlsoRemoved => WholeAnswer<object::Removed> | 409;
    /// Change a session, from its next run on
    Set: Post "/v1/sessions/{session}/set" (session) { request::NewSession } => WholeAnswer<object::Session> | 409;
    /// What it is told to be, in the words of a request
    Definition: Get "/v1/sessions/{session}/definition" (session) => WholeAnswer<object::Declared>;
    /// What a change would change, without doing it
    Differs: Post "/v1/sessions/{session}/differs" (session) { request::NewSession } => WholeAnswer<Vec<object::Difference>> | 409;
    /// Give it another name, while nothing of it runs
    Rename: Post "/v1/sessions/{session}/rename" (session) { request::Rename } => WholeAnswer<object::Session> | 409;
    /// Start it; returns when it runs
    Start: Post "/v1/sessions/{session}/start" (session) => WholeAnswer<object::Session> | 409;
    /// Stop it; returns when nothing of it lives
    Stop: Post "/v1/sessions/{session}/stop" (session) { request::Stop } => WholeAnswer<object::Session> | 409;
    /// End its run and start another
    Restart: Post "/v1/sessions/{session}/restart" (session) => WholeAnswer<object::Session> | 409;
    /// Stop it and put it away, with its history
    Archive: Post "/v1/sessions/{session}/archive" (session) => WholeAnswer<object::Session> | 409;
    /// Bring it back from the archive
    Restore: Post "/v1/sessions/{session}/restore" (session) => WholeAnswer<object::Session> | 409;
    /// Wait until it is in one of several states
    Wait: Get "/v1/sessions/{session}/wait" (session) ? query::Wait => WholeAnswer<object::Session> | 408 422;
    /// Make sessions match a file: all of it, or nothing; returns after the first attempts to start them
    Apply: Post "/v1/apply" { request::Apply } => WholeAnswer<object::Applied> | 404 409;
    /// Archive every session that is not in use; returns when that is done
    Purge: Post "/v1/purge" { request::Purge } => WholeAnswer<object::Purged> | 409;
    /// Bring every archived session back whose name is free
    RestoreAll: Post "/v1/restore" => WholeAnswer<Vec<object::Session>> | 409;

    /// Read config.toml again; a bad one leaves the old one in force
    Reload: Post "/v1/reload" => WholeAnswer<object::Reloaded> | 422;
    /// Full text over names, messages, answers and whys, best first; `indexed` and `total` in the answer's head say how much was looked through
    Search: Get "/v1/search" ? query::Search => WholeAnswer<Vec<object::Hit>> | 404 422;

    /// Sums of what turns took, as their agents reported it
    Usage: Get "/v1/usage" ? query::Usage => WholeAnswer<Vec<object::UsageSum>> | 422;
    /// The accounts, their limits, and who is held by them
    Accounts: Get "/v1/accounts" => WholeAnswer<Vec<object::Account>>;
    /// Let the sessions of an account go on, one of them first
    ResumeAccount: Post "/v1/accounts/resume" { request::ResumeAccount } => WholeAnswer<object::Account> | 404 409;

    /// What its agents printed, one object a line
    Logs: Get "/v1/sessions/{session}/logs" (session) ? query::Logs => LinesAnswer<object::LogLine>;
    /// Its state, messages and output as they come; a consumer
    Stream: Get "/v1/sessions/{session}/stream" (session) ? query::Stream => EventsAnswer<Value> | 409;
    /// Attach: counted while it is read; says where its terminal is
    Attach: Post "/v1/sessions/{session}/attach" (session) { request::Attach } => LinesAnswer<object::Attached> | 409;
    /// Where its terminal can be looked at, without being a consumer
    Screen: Get "/v1/sessions/{session}/screen" (session) => WholeAnswer<object::Terminal> | 409;

    /// Its messages
    Messages: Get "/v1/sessions/{session}/messages" (session) ? query::Messages => WholeAnswer<Vec<object::Message>> | 422;
    /// Send a message; with wait, returns its answer
    Send: Post "/v1/sessions/{session}/messages" (session) ? query::Patience { request::NewMessage }
        => WholeAnswer<object::Sent> | 409;
    /// One message
    ShowMessage: Get "/v1/sessions/{session}/messages/{message}" (session, message) ? query::Patience
        => WholeAnswer<object::Message> | 408 409 422;
    /// Cancel it before its turn
    CancelMessage: Post "/v1/sessions/{session}/messages/{message}/cancel" (session, message)
        => WholeAnswer<object::Message> | 409;
    /// Try a failed one again
    RetryMessage: Post "/v1/sessions/{session}/messages/{message}/retry" (session, message)
        => WholeAnswer<object::Sent> | 409;
    /// End the turn under way, keep the run
    Interrupt: Post "/v1/sessions/{session}/interrupt" (session) => WholeAnswer<object::Session> | 409;
    /// Answer a permission request
    AnswerPermission: Post "/v1/sessions/{session}/answer" (session) { request::Permission }
        => WholeAnswer<object::Session> | 409;

    /// Every lock that is held now
    Locks: Get "/v1/locks" ? query::Locks => WholeAnswer<Vec<object::Lock>>;
    /// Hold a `key:` lock for as long as the connection is open
    Hold: Post "/v1/locks/hold" { request::Hold } => LinesAnswer<object::HoldLine> | 409 429;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_endpoints_are_at_the_same_place() {
        let place = |address: &Address| {
            let description = address.description();
            (description.method.word(), description.path)
        };
        let mut places: Vec<_> = Address::ALL.iter().map(place).collect();
        places.sort_unstable();
        let all = places.len();
        places.dedup();
        assert_eq!(places.len(), all);
    }
}
