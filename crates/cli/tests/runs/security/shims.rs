//! Only the daemon commands a shim.
