//! Which modules a path leads to: through children, imports and re-exports, as far as names alone can tell.

use crate::module::Modules;

/// Imports may lead to imports; more than this many in a row are a circle.
const HOPS: usize = 16;

impl Modules {
    /// Every module that the path, used in this module, involves: those whose re-exports it goes through, and
    /// the one it ends in. Empty if the path leads out of the crate.
    pub(crate) fn resolve(&self, from: usize, path: &[String]) -> Vec<usize> {
        let mut passed = Vec::new();
        if let Some(end) = self.walk(from, path, &mut passed, HOPS) {
            passed.push(end);
        }
        passed
    }

    fn walk(&self, from: usize, path: &[String], passed: &mut Vec<usize>, hops: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let mut here = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.0[from].parent,
            name => self.named(from, name, passed, hops)?,
        };
        for name in rest {
            here = match name.as_str() {
                "super" => self.0[here].parent,
                name => match self.named(here, name, passed, hops) {
                    Some(next) => next,
                    None => return Some(here),
                },
            };
        }
        Some(here)
    }

    /// The module that this name leads to from here: a child, or the origin of an imported name.
    fn named(&self, here: usize, name: &str, passed: &mut Vec<usize>, hops: usize) -> Option<usize> {
        let module = &self.0[here];
        if let Some(child) = module.children.get(name) {
            return Some(*child);
        }
        if let Some(path) = module.imports.get(name).filter(|_| hops > 0) {
            passed.push(here);
            return self.walk(here, path, passed, hops - 1);
        }
        if module.items.contains(name) {
            return None;
        }
        let globs = module.globs.iter().filter(|_| hops > 0);
        let sources = globs.filter_map(|path| self.walk(here, path, &mut Vec::new(), hops - 1));
        sources.filter(|source| *source != here).find(|source| self.knows(*source, name))
    }

    fn knows(&self, module: usize, name: &str) -> bool {
        let module = &self.0[module];
        module.items.contains(name) || module.imports.contains_key(name) || module.children.contains_key(name)
    }
}
