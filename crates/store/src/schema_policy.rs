//! What to do with a store whose schema is older than this program.

/// What to do with a schema that is older than this program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// Migrate it. Creates the store if there is none.
    #[default]
    Migrate,
    /// Refuse it, so that only the service migrates.
    Refuse,
    /// Refuse it, but create the store if there is none.
    RefuseUnlessEmpty,
    /// Keep it unchanged, for commands that only read or copy.
    Keep,
}

/// What to do with the schema of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaAction {
    /// Open the store with the schema it has.
    Keep,
    /// Apply the missing migrations.
    Migrate,
    /// Do not open the store.
    Refuse,
}

impl SchemaPolicy {
    /// The action for a store to which `found` of the `known` migrations were applied.
    pub(crate) fn action(self, found: usize, known: usize) -> SchemaAction {
        match self {
            _ if found >= known => SchemaAction::Keep,
            Self::Migrate => SchemaAction::Migrate,
            Self::RefuseUnlessEmpty if found == 0 => SchemaAction::Migrate,
            Self::Refuse | Self::RefuseUnlessEmpty => SchemaAction::Refuse,
            Self::Keep => SchemaAction::Keep,
        }
    }
}
