//! Nothing that pinfold did not make is changed or removed.
