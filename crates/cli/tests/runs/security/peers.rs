//! Another user at every socket, and another user who answers.
