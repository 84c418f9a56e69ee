//! Long histories and hungry agents: what the daemon and a run may take has a bound.
