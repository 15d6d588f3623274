//! Why a template cannot be created, and what a create returns. The checks are made in this order:
//! an earlier request with the same Idempotency-Key, a name in use or locked, the category of the
//! translation group, the limits of the account.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::lifecycle::State,
};

use crate::{
    CreateOutcome, CreatedTemplate, IdempotencyRecord, NameConflict, NewTemplate, StoreError,
    stored_row::StoredRow,
};

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

/// The refusal of a template whose translation group has another category; `group` is the category
/// of the group, if the template has one that is not empty.
pub(crate) fn category_refusal(
    new: &NewTemplate,
    group: Option<Category>,
) -> Option<CreateOutcome> {
    group.filter(|group| *group != new.template.category()).map(CreateOutcome::CategoryDiffers)
}

/// The template as the create reports it.
pub(crate) fn created(new: &NewTemplate, id: TemplateId, state: &State) -> CreatedTemplate {
    CreatedTemplate { id, status: state.status(), category: new.template.category() }
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
