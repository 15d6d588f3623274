//! Why a template cannot be created, and what a create returns.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
};

use crate::{
    CreateOutcome, IdempotencyRecord, Limit, NameConflict, NewTemplate, StoreError,
    limits::RemainingQuota, stored_row::StoredRow,
};

/// What decides whether a template is created, in the order in which it is checked.
pub(crate) struct Existing<'e> {
    /// The record of an earlier request with the same Idempotency-Key.
    pub(crate) record: Option<IdempotencyRecord>,
    /// The template that has the unique key.
    pub(crate) owner: Option<KeyOwner>,
    /// The refusal of a name that an emulator account has locked.
    pub(crate) locked: Option<CreateOutcome>,
    /// The category of the translation group, if the template has one that is not empty.
    pub(crate) group: Option<Category>,
    /// How many templates the account may still create, if it has limits.
    pub(crate) quota: Option<&'e mut RemainingQuota>,
    /// The quota of stored bytes, if the content exceeds it.
    pub(crate) exceeded: Option<Limit>,
}

impl Existing<'_> {
    /// The outcome of a create that creates nothing. If there is none, the create has used up its
    /// part of the quota.
    pub(crate) fn outcome(self, new: &NewTemplate) -> Option<CreateOutcome> {
        if let Some((idempotency, record)) = new.idempotency.zip(self.record) {
            return Some(record.outcome_for(idempotency.payload));
        }
        if let Some(owner) = self.owner {
            return Some(CreateOutcome::NameInUse(owner.conflict_for(new.account)));
        }
        if self.locked.is_some() {
            return self.locked;
        }
        if let Some(group) = self.group.filter(|group| *group != new.template.category()) {
            return Some(CreateOutcome::CategoryDiffers(group));
        }
        let reached = match self.exceeded {
            None => self.quota.and_then(RemainingQuota::take),
            Some(exceeded) => self.quota.and_then(|quota| quota.reached()).or(Some(exceeded)),
        };
        reached.map(CreateOutcome::Limited)
    }
}

impl IdempotencyRecord {
    /// The outcome of another request with the same key and this payload.
    pub fn outcome_for(&self, payload: [u8; 8]) -> CreateOutcome {
        if self.payload == payload {
            CreateOutcome::Replayed(self.created)
        } else {
            CreateOutcome::KeyReused
        }
    }
}

/// The template that has a unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyOwner {
    pub(crate) id: TemplateId,
    pub(crate) account: AccountId,
}

impl KeyOwner {
    /// The template in a row with its id and account.
    pub(crate) fn read(row: &impl StoredRow) -> Result<Self, StoreError> {
        Ok(Self { id: row.template_id("id")?, account: row.account_id("account_id")? })
    }

    /// The conflict as reported to an account. Only the template's own account learns its id.
    pub(crate) fn conflict_for(self, account: AccountId) -> NameConflict {
        NameConflict { existing_id: (self.account == account).then_some(self.id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_account_of_a_template_learns_its_id() {
        let (own, other) = (AccountId::new(1).unwrap(), AccountId::new(2).unwrap());
        let owner = KeyOwner { id: TemplateId::new(7).unwrap(), account: own };
        assert_eq!(owner.conflict_for(own), NameConflict { existing_id: Some(owner.id) });
        assert_eq!(owner.conflict_for(other), NameConflict { existing_id: None });
    }
}
