//! Counts the round trips of changes of templates.

use galley_domain::{
    rulebook::Category::Utility,
    template::{Review, edit::Edit, lifecycle::Trigger},
};
use galley_store::{Actor, Author, TemplateChange};

use super::counted_store;
use crate::conformance::{
    fixture::{account, change, create, done, initiator, new, noon, translation},
    sessions::token,
};

fn text(text: &str) -> Edit {
    let content = format!(r#"{{"components":[{{"type":"BODY","text":"{text}"}}]}}"#);
    Edit::Replace { content: Some(content), category: None }
}

#[tokio::test]
async fn changes_of_templates_take_few_round_trips() {
    let (store, proxy, _) = counted_store().await;
    let mut counts = Vec::new();
    // The first pass prepares the statements.
    for name in ["one", "two"] {
        let account = account(&store, name).await;
        let mut ids = Vec::new();
        for language in ["en_US", "de_DE", "pt_BR"] {
            ids.push(create(&store, translation(account, name, language, Utility)).await);
        }
        let several =
            [create(&store, new(account, "a")).await, create(&store, new(account, "b")).await];
        let reviewer = token(&store, account, name).await;
        counts.clear();
        proxy.take();
        done(store.edit_template(change(account, ids[0]), text("new")).await.unwrap());
        counts.push(("edit", proxy.take()));
        done(store.edit_template(change(account, ids[0]), Edit::Restore(1)).await.unwrap());
        counts.push(("restore", proxy.take()));
        let approve = store.review_template(change(account, ids[0]), Trigger::Approve, None);
        done(approve.await.unwrap());
        counts.push(("approve", proxy.take()));
        let by = Author::operator(noon(1));
        assert!(store.set_account_four_eyes(account, true, by).await.unwrap());
        let by_reviewer =
            TemplateChange { actor: Actor::Token(reviewer), ..change(account, ids[0]) };
        done(store.edit_template(by_reviewer.clone(), text("of the reviewer")).await.unwrap());
        done(store.edit_template(change(account, ids[0]), text("another")).await.unwrap());
        proxy.take();
        let approve = store.review_template(by_reviewer, Trigger::Approve, None);
        done(approve.await.unwrap());
        counts.push(("approve with four eyes", proxy.take()));
        done(store.delete_template(change(account, ids[0])).await.unwrap());
        counts.push(("delete one", proxy.take()));
        let by = initiator(account, Review::Manual, noon(2));
        store.delete_templates(by, several.to_vec()).await.unwrap();
        counts.push(("delete two", proxy.take()));
        store.delete_translations(by, name).await.unwrap();
        counts.push(("delete two translations", proxy.take()));
    }
    let expected = [
        ("edit", 4),
        ("restore", 5),
        ("approve", 4),
        ("approve with four eyes", 7),
        ("delete one", 3),
        ("delete two", 3),
        ("delete two translations", 3),
    ];
    assert_eq!(counts, expected);
}
