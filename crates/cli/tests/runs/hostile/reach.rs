//! One home is one daemon, found from everywhere, also where its socket was removed.
