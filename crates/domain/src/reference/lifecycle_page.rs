//! The table of moves, for the documentation, written from the table itself.

use std::fmt::Write as _;

use crate::template::{
    Review, Status,
    lifecycle::{Guard, Next, TRANSITIONS},
};

/// The whole page as Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# The life of a template\n\n\
         <!-- Written from the table of moves by `galley-domain`; a test holds it. \
         To renew: UPDATE_DOCS=1 cargo test -p galley-domain --test pages -->\n\n\
         An edit makes a new version. Each version is PENDING, APPROVED or REJECTED; the template as \
         a whole may be under a hold, PAUSED or DISABLED. The `status` that is shown is the hold, \
         else that of the newest version. `live_version` is the newest approved version, absent under \
         a hold: it is what renders, also while a newer one waits or was refused.\n\n\
         These are all the moves there are. Anything else is answered 409 `move-not-possible`, with \
         the moves that are possible.\n\n\
         | status | trigger | if | next status | event |\n|---|---|---|---|---|\n",
    );
    for (review, guard) in
        [(Review::Auto, Guard::AutoReview), (Review::Manual, Guard::ManualReview)]
    {
        let (guard, next) = (condition(guard), review.first_status().as_str());
        let _ = writeln!(page, "| (none) | create | {guard} | {next} | `template.created` |");
    }
    for row in TRANSITIONS {
        let from: Vec<&str> = row.from.iter().map(|status| status.as_str()).collect();
        let next = match row.to {
            Next::Version(status) if row.from.contains(&Status::Paused) => {
                format!("{}; a pause stays", status.as_str())
            }
            Next::Version(status) => status.as_str().to_owned(),
            Next::Held(hold) => hold.as_str().to_owned(),
            Next::Released => "that of the newest version".to_owned(),
            Next::Deleted => "(gone; the name is free)".to_owned(),
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
        "\nA PAUSED template can be edited and its waiting version decided on: the pause stays, and \
         what was approved meanwhile is live when it ends. An edit that changes the category is told \
         twice: `template.edited`, then `template.category_changed`.\n",
    );
    page
}

fn condition(guard: Guard) -> &'static str {
    match guard {
        Guard::Always => "",
        Guard::AutoReview => "review is auto",
        Guard::ManualReview => "review is manual",
        Guard::VersionWaits => "the newest version is PENDING",
        Guard::HasLiveVersion => "some version was approved",
    }
}
