//! Only living senders of the tree are believed.
