//! Connects accounts of tests, and records what their provider shows, without a provider.

use std::time::Duration;

use galley_domain::{
    id::{AccountId, TemplateId},
    template::Review,
    upstream::{CallFailure, ProviderError, RemoteTemplate},
};
use galley_server::Clock as _;
use galley_store::{
    Actor, Author, Fence, Fenced, PageRecord, ReadRecord, StoredOperation, TemplateChange,
    UpstreamAction, UpstreamActionOutcome,
};
use jiff::SignedDuration;
use serde_json::json;

use super::TestService;

/// A token that no response may contain.
pub(crate) const PROVIDER_TOKEN: &str = "the-provider-s-token";

impl TestService {
    /// Connects an account with the rulebook `whatsapp`.
    pub(crate) async fn connect(&self, account: AccountId) {
        self.connect_with_hook(account, &format!("hook of {account}"), None).await;
        // The credential cache notices the change within two seconds.
        self.clock.advance(Duration::from_secs(2));
    }

    /// Connects an account, and brings a template that it created before into a state in which the
    /// operation is possible.
    pub(crate) async fn connect_for(&self, operation: &str, account: AccountId, id: TemplateId) {
        self.connect(account).await;
        match operation {
            // The provider does not have the template.
            "submitTemplate" => {}
            "retryOperation" => self.refuse_submission(account, id).await,
            _ => self.show_at_provider(account, id, "The provider's own text.").await,
        }
    }

    /// Deletes the connection of an account, if it has one.
    pub(crate) async fn disconnect(&self, account: AccountId) {
        let by = Author::operator(self.clock.now());
        self.store.disconnect_upstream(account, by).await.unwrap();
        self.clock.advance(Duration::from_secs(2));
    }

    /// Records that the provider shows a template, with this text as its body.
    pub(crate) async fn show_at_provider(&self, account: AccountId, id: TemplateId, text: &str) {
        let stored = self.store.template(account, id).await.unwrap().unwrap();
        let template = &stored.template;
        let document = json!({
            "id": format!("594425479{id}"), "name": template.name(), "language": template.language(),
            "status": "APPROVED", "category": template.category().as_str(),
            "quality_score": {"score": "GREEN"}, "components": [{"type": "BODY", "text": text}],
        });
        let remote = RemoteTemplate::parse(&document.to_string()).unwrap();
        let fence = self.lease(account).await;
        let seen_at = self.clock.now();
        let read = ReadRecord { template: remote, asked: None, confirmed: None, seen_at };
        let recorded = self.store.record_read(fence, read, seen_at).await.unwrap();
        assert!(matches!(recorded, Fenced::Done(_)), "{recorded:?}");
        assert_eq!(self.store.release_connection(fence).await.unwrap(), Fenced::Done(()));
    }

    /// Makes a sweep that sees these templates: the id, the name and the source of each.
    pub(crate) async fn sweep_provider(&self, account: AccountId, seen: &[(&str, &str, &str)]) {
        let templates = seen.iter().map(|(id, name, source)| {
            let document = json!({
                "id": id, "name": name, "language": "en_US", "status": "APPROVED",
                "category": "UTILITY", "source": source, "components": [],
            });
            RemoteTemplate::parse(&document.to_string()).unwrap()
        });
        self.clock.advance(Duration::from_secs(1));
        let (fence, at) = (self.lease(account).await, self.clock.now());
        let page =
            PageRecord { templates: templates.collect(), seen_at: at, ..PageRecord::default() };
        assert!(matches!(self.store.begin_sweep(fence, true, at).await.unwrap(), Fenced::Done(_)));
        let recorded = self.store.record_page(fence, page, at).await.unwrap();
        assert!(matches!(recorded, Fenced::Done(_)));
        assert!(matches!(self.store.finish_sweep(fence, at).await.unwrap(), Fenced::Done(_)));
        assert_eq!(self.store.release_connection(fence).await.unwrap(), Fenced::Done(()));
    }

    /// Submits a template, or pushes it if it drifts; the provider refuses the call.
    pub(crate) async fn refuse_submission(&self, account: AccountId, template: TemplateId) {
        let at = self.clock.now();
        let change = TemplateChange {
            account,
            id: template,
            expected: None,
            version: None,
            review: Review::Provider,
            actor: Actor::Operator,
            trace: None,
            at,
        };
        let submit = self.store.act_upstream(change.clone(), UpstreamAction::Submit);
        let outcome = match submit.await.unwrap() {
            UpstreamActionOutcome::NotPossible(_) => {
                self.store.act_upstream(change, UpstreamAction::Push).await.unwrap()
            }
            outcome => outcome,
        };
        let UpstreamActionOutcome::Queued(queued) = outcome else {
            panic!("{outcome:?}");
        };
        let (id, fence) = (queued.id, self.lease(account).await);
        let begun = self.store.begin_operation(fence, id, at).await.unwrap();
        assert!(matches!(begun, Fenced::Done(Some(_))), "{begun:?}");
        let error = ProviderError {
            code: 100,
            subcode: Some(2_388_040),
            title: Some("Text is too long".to_owned()),
            message: "Shorten the text of the body.".to_owned(),
        };
        let refused = Err(CallFailure::Refused(error));
        let recorded = self.store.record_call(fence, id, refused, at).await.unwrap();
        assert!(matches!(recorded, Fenced::Done(Some(_))), "{recorded:?}");
        assert_eq!(self.store.release_connection(fence).await.unwrap(), Fenced::Done(()));
    }

    pub(crate) async fn operations(&self, account: AccountId) -> Vec<StoredOperation> {
        self.store.operations(account, None, 100).await.unwrap()
    }

    async fn lease(&self, account: AccountId) -> Fence {
        let now = self.clock.now();
        let until = now.checked_add(SignedDuration::from_mins(1)).unwrap();
        self.store.lease_connection(account, now..until).await.unwrap().unwrap().fence
    }
}
