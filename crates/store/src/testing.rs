//! A store for tests: faults are injected into a real one.

use std::{future::Future, pin::Pin, sync::Arc};

use galley_domain::{
    id::{AccountId, TemplateId},
    template::message_text::MessageText,
};
use jiff::Timestamp;

use crate::{
    ChangeStore, CreateOutcome, EngineSubjects, IdempotencyRecord, LanguageSummary, ListQuery,
    NameConflict, NewTemplate, Store, StoreError, StoredTemplate, TemplateStore, UpsertOutcome,
    Version, VersionSummary, engine::FaultPoints,
};

pub use crate::engine::{Fault, Faults, PlantedError};

/// Subjects that forward to those of an engine, except for methods with a fault.
struct FaultySubjects {
    inner: Arc<dyn EngineSubjects>,
    faults: Arc<Faults>,
}

impl Store {
    /// The same store with faults, which can be changed while the store is in use.
    #[must_use]
    pub fn with_faults(&self, faults: Arc<Faults>) -> Self {
        let subjects =
            FaultySubjects { inner: Arc::clone(&self.subjects), faults: Arc::clone(&faults) };
        Self {
            engine: Arc::clone(&self.engine),
            subjects: Arc::new(subjects),
            faults: FaultPoints::of(faults),
        }
    }
}

/// Implements the methods of the traits, each with its fault. The function after `=>` is called instead
/// of the method.
macro_rules! with_faults {
    (@forward $store:ident $method:ident($($argument:ident),*)) => {
        $store.inner.$method($($argument),*)
    };
    ($($subject:ident {
        $(
            $method:ident $(<$($life:lifetime),+>)? ($($argument:ident: $kind:ty),*)
            -> $output:ty $(=> $instead:path)?;
        )+
    })+) => {
        $(impl $subject for FaultySubjects {
            $(
                fn $method<'me, $($($life,)+)? 'future>(
                    &'me self,
                    $($argument: $kind,)*
                ) -> Pin<Box<dyn Future<Output = Result<$output, StoreError>> + Send + 'future>>
                where
                    'me: 'future,
                    $($($life: 'future,)+)?
                    Self: 'future,
                {
                    Box::pin(async move {
                        self.faults.inject(stringify!($method)).await?;
                        let store = self;
                        let result =
                            with_faults!(@forward store $method($($argument),*) $($instead)?).await;
                        self.faults.hold_back(stringify!($method)).await;
                        result
                    })
                }
            )+
        })+
    };
}

with_faults! {
    TemplateStore {
        create_template(new: NewTemplate) -> CreateOutcome;
        template(account: AccountId, id: TemplateId) -> Option<Arc<StoredTemplate>>;
        version(account: AccountId, id: TemplateId, number: u64) -> Option<Version>;
        versions(
            account: AccountId, id: TemplateId, before: Option<u64>, limit: usize
        ) -> Option<Vec<VersionSummary>>;
        translations<'name>(account: AccountId, name: &'name str) -> Vec<StoredTemplate>;
        languages(query: ListQuery, names: Vec<String>) -> Vec<LanguageSummary>;
        name_conflict<'key>(account: AccountId, unique_key: &'key str) -> Option<NameConflict>;
        template_with_text<'words>(
            account: AccountId, text: &'words MessageText, except: Option<TemplateId>
        ) -> Option<TemplateId>;
        idempotency_record(account: AccountId, key: [u8; 16], at: Timestamp) -> Option<IdempotencyRecord>;
    }
    ChangeStore {
        upsert_templates(templates: Vec<NewTemplate>) -> UpsertOutcome;
    }
}
