//! Which migrations a store needs, and which stores are refused.

use crate::{StoreError, error::failed};

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

/// The migrations of one kind of store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migrations {
    /// What contains such a store.
    pub(crate) kind: &'static str,
    /// What else an operator can do with an older schema.
    pub(crate) copy_advice: &'static str,
    /// The schema version that the first migration creates. Lower versions are those of builds
    /// before 0.1.0.
    pub(crate) first: usize,
    /// The SQL of each, oldest first.
    pub(crate) statements: &'static [&'static str],
}

impl Migrations {
    /// The schema version after all migrations.
    pub(crate) fn latest(&self) -> usize {
        self.first + self.statements.len() - 1
    }

    /// The migrations that a store of this version lacks, with the version that each creates. The
    /// version of a new store is 0.
    pub(crate) fn missing(&self, found: usize) -> impl Iterator<Item = (usize, &'static str)> {
        let numbered = (self.first..).zip(self.statements.iter().copied());
        numbered.skip_while(move |(version, _)| *version <= found)
    }

    /// Refuses a schema that this program cannot use, whether or not it may migrate.
    pub(crate) fn check(&self, found: usize) -> Result<(), StoreError> {
        let (kind, known) = (self.kind, self.latest());
        if found > known {
            return Err(failed(format!(
                "the {kind} has schema {found}, newer than schema {known} of this program: use a \
                 newer galley"
            )));
        }
        if (1..self.first).contains(&found) {
            return Err(failed(format!(
                "the {kind} has schema {found}, written by a build before 0.1.0, from which there is \
                 no upgrade: create a new store, and create the templates there that the earlier \
                 build lists (GET …/message_templates)"
            )));
        }
        Ok(())
    }

    /// The error for a store that needs a migration where none is allowed.
    pub(crate) fn older(&self, found: usize) -> StoreError {
        let (Self { kind, copy_advice, .. }, known) = (self, self.latest());
        failed(format!(
            "the {kind} has schema {found}, older than schema {known} of this program: `galley serve` \
             migrates it{copy_advice}"
        ))
    }

    /// Whether a store of this version is to be migrated; 0 is a new store.
    pub(crate) fn are_wanted(
        &self,
        policy: SchemaPolicy,
        found: usize,
    ) -> Result<bool, StoreError> {
        self.check(found)?;
        match policy {
            _ if found == self.latest() => Ok(false),
            SchemaPolicy::Migrate => Ok(true),
            SchemaPolicy::RefuseUnlessEmpty if found == 0 => Ok(true),
            SchemaPolicy::Refuse | SchemaPolicy::RefuseUnlessEmpty => Err(self.older(found)),
            SchemaPolicy::Keep => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    const MIGRATIONS: Migrations =
        Migrations { kind: "file", copy_advice: "", first: 19, statements: &["initial", "next"] };

    #[test]
    fn a_store_gets_the_migrations_after_its_version() {
        assert_eq!(MIGRATIONS.latest(), 20);
        let missing = |found| MIGRATIONS.missing(found).collect::<Vec<_>>();
        assert_eq!(missing(0), [(19, "initial"), (20, "next")]);
        assert_eq!(missing(19), [(20, "next")]);
        assert_eq!(missing(20), []);
    }

    #[test]
    fn the_policy_decides_about_older_stores_only() {
        use SchemaPolicy::{Keep, Migrate, Refuse, RefuseUnlessEmpty};
        let wanted = |policy, found| {
            let wanted = MIGRATIONS.are_wanted(policy, found);
            wanted.map_err(|it| it.source().unwrap().to_string())
        };
        for (policy, new, older) in [
            (Migrate, Some(true), Some(true)),
            (RefuseUnlessEmpty, Some(true), None),
            (Refuse, None, None),
            (Keep, Some(false), Some(false)),
        ] {
            assert_eq!(wanted(policy, 0).ok(), new, "{policy:?}");
            assert_eq!(wanted(policy, 19).ok(), older, "{policy:?}");
            assert_eq!(wanted(policy, 20), Ok(false), "{policy:?}");
            let newer = wanted(policy, 21).unwrap_err();
            assert!(newer.contains("the file has schema 21, newer than schema 20"), "{newer}");
            for found in [1, 18] {
                let refused = wanted(policy, found).unwrap_err();
                assert!(refused.contains("a build before 0.1.0"), "{refused}");
            }
        }
    }
}
