//! A resource with the files that represent it.

use super::directory::{DirectoryError, Gated, LockMode, OpenDirectory, WantedFile};
use crate::files::name::FileName;
use crate::resource::{Resource, ResourceKind};

/// A resource with its files.
pub(crate) struct Target {
    pub(crate) resource: String,
    pub(crate) kind: ResourceKind,
    pub(crate) wanted: Vec<WantedFile>,
    pub(crate) place: Option<OpenDirectory>,
}

impl Target {
    pub(crate) fn open(resource: &Resource) -> Result<Self, DirectoryError> {
        let alone = |name| vec![WantedFile { name, mode: LockMode::Exclusive, gated: Gated::No }];
        let wanted = match resource {
            Resource::Key(name) => alone(FileName::of_key(name)),
            Resource::Session(name) => alone(FileName::of_session(name)),
            Resource::Vendor(name) => alone(FileName::of_vendor(name)),
            Resource::Directory(path) => return OpenDirectory::open(path).map(Self::directory),
        };
        Ok(Self { resource: resource.name(), kind: resource.kind(), wanted, place: None })
    }

    /// Returns what one of its files represents: itself, or a directory above it.
    pub(crate) fn name_of(&self, file: &FileName) -> String {
        let above = self.place.as_ref().and_then(|place| place.path_of(file));
        above.map_or_else(|| self.resource.clone(), |path| path.display().to_string())
    }

    fn directory(place: OpenDirectory) -> Self {
        let resource = place.path.display().to_string();
        Self { resource, kind: ResourceKind::Directory, wanted: place.wanted(), place: Some(place) }
    }
}
