//! The links of a response: which operations a client can call next, with which values. Tools such as
//! schemathesis follow them.

use super::tree::Node;

/// Name, operation and description of a call.
type Call = (&'static str, &'static str, &'static str);

const TEMPLATE_CALLS: &[Call] = &[
    ("show", "showTemplate", "Reads the template."),
    ("edit", "editTemplate", "Creates a new version."),
    ("delete", "deleteTemplate", "Deletes the template."),
    ("versions", "listVersions", "Lists the versions."),
    ("review", "reviewTemplate", "Decides on the template."),
    ("render", "renderTemplate", "Fills in values."),
    ("proof", "showProof", "Shows how the template looks."),
];

const WEBHOOK_CALLS: &[Call] = &[
    ("show", "showWebhook", "Reads the endpoint."),
    ("edit", "editWebhook", "Changes the endpoint."),
    ("delete", "deleteWebhook", "Deletes the endpoint."),
    ("rotate", "rotateSecret", "Rotates the secret."),
    ("deliveries", "listDeliveries", "Lists the deliveries."),
    ("replay", "replayEvents", "Sends events again."),
];

const TOKEN_CALLS: &[Call] = &[("revoke", "revokeToken", "Revokes the token.")];

const BODY: (&str, &str) = ("path.id", "$response.body#/id");
const LIST: (&str, &str) = ("path.id", "$response.body#/data/0/id");
const PATH: (&str, &str) = ("path.id", "$request.path.id");

/// The links of a kind, as `x-links` names it.
pub(super) fn of_kind(kind: &str) -> Node {
    let links = match kind {
        "template-in-body" => calls(TEMPLATE_CALLS, BODY),
        "template-in-list" => chain(calls(TEMPLATE_CALLS, LIST), next_page("listTemplates", &[])),
        "template-in-path" => TEMPLATE_CALLS.iter().map(conditional).collect(),
        "version-in-list" => {
            let version = ("query.version", "$response.body#/data/0/version");
            let about = "Reads the template in this version.";
            let show = link("show", "showTemplate", about, &[PATH, version]);
            chain(vec![show], next_page("listVersions", &[PATH]))
        }
        "event-in-list" => vec![next_page("listEvents", &[])],
        "audit-in-list" => vec![next_page("listAuditEntries", &[])],
        "token-in-body" => calls(TOKEN_CALLS, BODY),
        "token-in-list" => calls(TOKEN_CALLS, LIST),
        "webhook-in-body" => calls(WEBHOOK_CALLS, BODY),
        "webhook-in-list" => calls(WEBHOOK_CALLS, LIST),
        "webhook-in-path" => calls(WEBHOOK_CALLS, PATH),
        "delivery-in-list" => {
            chain(calls(WEBHOOK_CALLS, PATH), next_page("listDeliveries", &[PATH]))
        }
        _ => panic!("there is no kind of links `{kind}`"),
    };
    Node::Object(links)
}

type Link = (String, Node);

fn calls(table: &[Call], id: (&str, &str)) -> Vec<Link> {
    table.iter().map(|(name, operation, about)| link(name, operation, about, &[id])).collect()
}

/// A call to the template in the path, which takes the `ETag` of the response if it can.
fn conditional(&(name, operation, about): &Call) -> Link {
    const TAG: &str = "$response.header.ETag";
    match name {
        "show" => link(name, operation, about, &[PATH, ("header.If-None-Match", TAG)]),
        "edit" | "delete" | "review" => {
            link(name, operation, about, &[PATH, ("header.If-Match", TAG)])
        }
        _ => link(name, operation, about, &[PATH]),
    }
}

fn next_page(operation: &str, parameters: &[(&str, &str)]) -> Link {
    let after = ("query.after", "$response.body#/paging/cursors/after");
    let parameters = [parameters, &[after]].concat();
    link("next", operation, "Reads the next page.", &parameters)
}

fn chain(mut links: Vec<Link>, last: Link) -> Vec<Link> {
    links.push(last);
    links
}

fn link(name: &str, operation: &str, description: &str, parameters: &[(&str, &str)]) -> Link {
    let account = [
        ("path.phone_number_id", "$request.path.phone_number_id"),
        ("path.key", "$request.path.key"),
    ];
    let parameters = account.iter().chain(parameters);
    let parameters = parameters.map(|&(name, value)| (name.to_owned(), Node::string(value)));
    let link = vec![
        ("operationId".to_owned(), Node::string(operation)),
        ("description".to_owned(), Node::string(description)),
        ("parameters".to_owned(), Node::Object(parameters.collect())),
    ];
    (name.to_owned(), Node::Object(link))
}
