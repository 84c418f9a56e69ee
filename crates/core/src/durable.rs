//! Which changes outlive the daemon that made them.

use crate::decision::Change;

impl Change {
    /// Whether it must be stored; the other changes are true only while this daemon lives.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        match self {
            Change::Life(_)
            | Change::Runs(_)
            | Change::Budgets(_)
            | Change::LastExit(_)
            | Change::Shim(_)
            | Change::Opened(_)
            | Change::Message(_)
            | Change::Doubted { .. }
            | Change::Request(_)
            | Change::Vendor(_)
            | Change::VendorForgotten
            | Change::ConversationLost(_)
            | Change::Spent(_)
            | Change::BudgetRaised(_)
            | Change::TurnSince(_)
            | Change::TurnTook(_)
            | Change::LastConsumer(_)
            | Change::KeepUntil(_)
            | Change::Interrupted(_)
            | Change::Guest(_)
            | Change::Spec(..)
            | Change::Looked
            | Change::Record(_) => true,
            Change::Joined(..)
            | Change::Left(_)
            | Change::Unneeded(_)
            | Change::Takeover(_)
            | Change::AwaitingGuest(_)
            | Change::Standing(_)
            | Change::Hold(_)
            | Change::Memory(_)
            | Change::SignOfLife(_)
            | Change::Closing(_)
            | Change::Mute(_)
            | Change::Leaving(_)
            | Change::Unsaved(_)
            | Change::Unended(_) => false,
        }
    }
}
