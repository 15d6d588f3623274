//! The lifecycle page of the documentation, generated from the transition table.

use std::fmt::Write as _;

use crate::template::{
    Review, Status,
    lifecycle::{Effect, Guard, TRANSITIONS},
};

/// The page as Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Template lifecycle\n\n\
         <!-- Generated from the transition table of `galley-domain`. To update it, run \
         UPDATE_DOCS=1 cargo test -p galley-domain --test domain pages -->\n\n\
         Every edit creates a new version. A version is PENDING, APPROVED or REJECTED. The template as \
         a whole can be on hold: PAUSED, DISABLED or ARCHIVED. Its `status` is the hold, if there is one, \
         otherwise the status of the newest version. `live_version` is the newest approved version; it \
         is absent during a hold. Galley renders the live version, even while a newer version is \
         PENDING or REJECTED.\n\n\
         The table lists all transitions. For any other, Galley responds with 409 `move-not-possible` \
         and the transitions that are possible.\n\n\
         | status | trigger | condition | next status | event |\n|---|---|---|---|---|\n",
    );
    for (review, guard) in
        [(Review::Auto, Guard::AutoReview), (Review::Manual, Guard::ManualReview)]
    {
        let (guard, next) = (condition(guard), review.initial_status().as_str());
        let _ = writeln!(page, "| (none) | create | {guard} | {next} | `template.created` |");
    }
    for row in TRANSITIONS {
        let from: Vec<&str> = row.from.iter().map(|status| status.as_str()).collect();
        let next = match row.effect {
            Effect::SetVersionStatus(status) if row.from.contains(&Status::Paused) => {
                format!("{}; a PAUSED template stays PAUSED", status.as_str())
            }
            Effect::SetVersionStatus(status) => status.as_str().to_owned(),
            Effect::SetHold(hold) => hold.as_str().to_owned(),
            Effect::ClearHold => "status of the newest version".to_owned(),
            Effect::Keep => "unchanged".to_owned(),
            Effect::Delete => "(deleted; the name is available again)".to_owned(),
        };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {next} | `{}` |",
            from.join(", "),
            row.trigger.as_str(),
            condition(row.guard),
            row.event.as_str()
        );
    }
    page.push_str(
        "\nA PAUSED template can be edited, and its PENDING version can be approved or rejected. The \
         template stays PAUSED; when it is resumed, the newest approved version becomes live. An edit \
         that changes the category emits two events: `template.edited`, then \
         `template.category_changed`.\n\n\
         Templates of accounts with the rulebook `whatsapp` are archived and unarchived on the Graph \
         surface. The review of an [emulator](emulator-reference.md) account is `scripted`: the triggers \
         `flag`, `quality`, `announce_category` and `change_category` happen there only.\n\n\
         An account that is [connected to a provider](upstream.md) submits each version to the provider: \
         at once with the review `auto`, after a reviewer's approval with `manual`. The version stays \
         PENDING until the provider decides. Every other status, and every hold, is the one that the \
         provider shows; it becomes visible without a transition of this table. `live_version` is the \
         version that the provider has approved and still shows: an edit takes it away as soon as the \
         provider reviews it, and so does content that was changed at the provider.\n",
    );
    page
}

fn condition(guard: Guard) -> &'static str {
    match guard {
        Guard::Always => "",
        Guard::AutoReview => "review is `auto`, and the account is not connected",
        Guard::ManualReview => "review is `manual` or `scripted`, or the account is connected",
        Guard::ScriptedReview => "review is `scripted`",
        Guard::NotConnected => "the account is not connected",
        Guard::VersionPending => "the newest version is PENDING, and the account is not connected",
        Guard::HasApprovedVersion => {
            "a version has been approved, and the account is not connected"
        }
        Guard::BeforeProvider => {
            "the account is connected, review is `manual`, and the newest version is not decided"
        }
        Guard::PendingBeforeProvider => {
            "the account is connected, review is `manual`, and the newest version is PENDING and not \
             decided"
        }
    }
}
