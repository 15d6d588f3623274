//! The catalogue of problems: the status, slug, title and remedy of each kind.

use axum::http::StatusCode;

/// Declares the catalogue: a new kind of problem is one new row, here and nowhere else.
macro_rules! catalogue {
    ($($kind:ident $status:ident $slug:literal $title:literal $remedy:literal;)+) => {
        /// The kinds of problems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ProblemKind {
            $($kind,)+
        }

        impl ProblemKind {
            pub(crate) const ALL: &[ProblemKind] = &[$(ProblemKind::$kind),+];

            pub(crate) fn status(self) -> StatusCode {
                match self {
                    $(ProblemKind::$kind => StatusCode::$status,)+
                }
            }

            /// The last segment of `type`, and the name of its page.
            pub(crate) fn slug(self) -> &'static str {
                match self {
                    $(ProblemKind::$kind => $slug,)+
                }
            }

            pub(crate) fn title(self) -> &'static str {
                match self {
                    $(ProblemKind::$kind => $title,)+
                }
            }

            /// How to fix it; also the detail of a problem that has no other.
            pub(crate) fn remedy(self) -> &'static str {
                match self {
                    $(ProblemKind::$kind => $remedy,)+
                }
            }
        }
    };
}

catalogue! {
    NotFound NOT_FOUND "not-found" "Not found"
        "Check the path. Phone number id and API key consist of 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -";
    MethodNotAllowed METHOD_NOT_ALLOWED "method-not-allowed" "Method not allowed"
        "Use one of the methods in the Allow header.";
    TokenMissing UNAUTHORIZED "token-missing" "The access token is missing"
        "Send the header `Authorization: Bearer <access token>`.";
    TokenUnknown UNAUTHORIZED "token-unknown" "The access token does not exist"
        "Check the token. `galley token create` creates a new one.";
    TokenExpired UNAUTHORIZED "token-expired" "The access token has expired"
        "Use a newer token. `galley token create` creates one.";
    TokenRevoked UNAUTHORIZED "token-revoked" "The access token was revoked"
        "Use another token. `galley token create` creates one.";
    KeyUnknown UNAUTHORIZED "key-unknown" "The API key in the path does not exist"
        "Check the key. `galley key create` creates a new one.";
    KeyExpired UNAUTHORIZED "key-expired" "The API key in the path has expired"
        "Use a newer key. `galley key create` creates one.";
    KeyRevoked UNAUTHORIZED "key-revoked" "The API key in the path was revoked"
        "Use another key. `galley key create` creates one.";
    CredentialsMismatch FORBIDDEN "credentials-mismatch" "API key and access token belong to different accounts"
        "Use an API key and an access token of the same account.";
    PhoneUnknown NOT_FOUND "phone-unknown" "The phone number does not belong to this account"
        "Check the phone number id. `galley phone add` adds one to an account.";
    ScopeMissing FORBIDDEN "scope-missing" "The access token lacks the required scope"
        "Use a token with the scope that the detail names. `galley token create --scopes` creates one.";
    AccountDisabled FORBIDDEN "account-disabled" "The account is disabled"
        "Contact the operator of this service. `galley account enable` enables the account again.";
    EmulatorOff FORBIDDEN "emulator-off" "This service does not serve emulator accounts"
        "Nothing was done. The account is an emulator, which tests use instead of WhatsApp. The operator sets `emulator = true` (or GALLEY_EMULATOR=true) to serve such accounts.";
    NotAnEmulator NOT_FOUND "not-an-emulator" "The account is not an emulator"
        "Nothing was done. Only emulator accounts have review rules, a clock, faults and messages. `galley account create NAME --rulebook whatsapp --emulator` creates one.";
    HookUnknown NOT_FOUND "hook-unknown" "There is no webhook address of a provider here"
        "Check the path. `galley upstream connect` shows it once, and `galley upstream hook` creates a new one.";
    HookNotVerified FORBIDDEN "hook-not-verified" "The address is not confirmed"
        "Send `hub.mode=subscribe`, `hub.verify_token` with the last segment of the path, and `hub.challenge` with at most 256 printable characters.";
    HookSecretMissing FORBIDDEN "hook-secret-missing" "The connection has no app secret"
        "Nothing was stored. Without the app secret, Galley cannot verify webhooks. The operator sets it with `galley upstream app-secret`.";
    HookSignature UNAUTHORIZED "hook-signature" "The signature of the webhook is missing or wrong"
        "Nothing was stored. Sign the body with the app secret, as Meta does (header X-Hub-Signature-256). If the secret of the app has changed, the operator sets the new one with `galley upstream app-secret`.";
    NotConnected NOT_FOUND "not-connected" "The account is not connected to a provider"
        "Nothing was done. Only connected accounts have templates and operations at a provider. `galley upstream connect` connects an account with the rulebook `whatsapp`.";
    UpstreamAction CONFLICT "upstream-action-not-possible" "The state of the template at the provider does not allow this"
        "Nothing was changed at the provider. Read the template: `upstream` shows its state there.";
    SessionEnded UNAUTHORIZED "session-ended" "The console session has ended"
        "Sign in again. A session ends after 2 hours without use, after 12 hours, when its token is revoked or expires, and when the account is disabled.";
    InvalidLink UNAUTHORIZED "invalid-link" "The console link is not valid"
        "A link works once, within 60 seconds. `galley console` creates a new one.";
    CrossSite FORBIDDEN "cross-site" "Another site has caused the request"
        "Nothing was done. Only pages of the console make this call; programs use API v1.0. If this is the console, reload the page, and set `public_url` to the address in the browser.";
    FourEyes FORBIDDEN "four-eyes" "A second person has to decide"
        "Nothing was done. Let a person decide who has neither created the version nor written any of the text that would become live. The operator decides with `galley review`, creates tokens with `galley token create`, and changes the rule with `galley account change --four-eyes`.";
    UnsupportedMediaType UNSUPPORTED_MEDIA_TYPE "unsupported-media-type" "The body must be JSON in UTF-8"
        "Send `Content-Type: application/json` and no Content-Encoding.";
    TooLarge PAYLOAD_TOO_LARGE "too-large" "The request body is too large"
        "Send a smaller document.";
    BodyTimeout REQUEST_TIMEOUT "body-timeout" "The request body arrived too slowly"
        "Send the whole body without delay.";
    MalformedJson BAD_REQUEST "malformed-json" "The body is not valid JSON"
        "Fix the JSON at the position that the detail names.";
    BadRequest BAD_REQUEST "bad-request" "A header or parameter is invalid"
        "Fix the header or parameter that the detail names.";
    RangeNotThere RANGE_NOT_SATISFIABLE "range-not-there" "The file does not have the requested bytes"
        "Request other bytes. Content-Range gives the length of the file.";
    InvalidTemplate UNPROCESSABLE_ENTITY "invalid-template" "The template is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    IdempotencyKeyReused UNPROCESSABLE_ENTITY "idempotency-key-reused" "The Idempotency-Key belongs to another request"
        "Use a new key for a new request. To repeat a request, send exactly the same bytes.";
    WrongSurface CONFLICT "wrong-surface" "The account uses another API surface"
        "Nothing was done. The calls of WhatsApp's Graph API under `/{version}/` are for accounts with the rulebook `whatsapp`. Accounts with the rulebook `v1` use API v1.0.";
    NameTaken CONFLICT "name-taken" "The name is already in use"
        "Choose another name. If `existing_id` is present, the template belongs to your own account.";
    NameLocked CONFLICT "name-locked" "The name of a deleted template is locked"
        "Nothing was done. Choose another name, or move the clock of the emulator account to the time in `until`.";
    MessageRefused UNPROCESSABLE_ENTITY "message-refused" "The message was refused"
        "Nothing was sent. Fix everything listed in `galley_violations`. Each entry says what is wrong, and where.";
    UpstreamRefused UNPROCESSABLE_ENTITY "upstream-refused" "The provider refused the change"
        "Fix what the provider names in the error, and send the request again. A template whose create was refused does not exist.";
    ProvokedFailure INTERNAL_SERVER_ERROR "provoked-failure" "A failure was provoked"
        "A fault of the emulator account, the header Galley-Fault or the number of the recipient has provoked this failure. `emulator/faults` lists the faults.";
    TemplateUnknown NOT_FOUND "template-unknown" "The template does not exist"
        "Check the id. The account of this API key and token has no template with it.";
    VersionUnknown NOT_FOUND "version-unknown" "The template has no such version"
        "Check the number. Galley keeps the newest 100 versions of a template and the approved one; the list of versions shows them.";
    InvalidDecision UNPROCESSABLE_ENTITY "invalid-decision" "The decision is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    InvalidValues UNPROCESSABLE_ENTITY "invalid-values" "The values do not fit the template"
        "Fix every value listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    RevisionOutdated PRECONDITION_FAILED "revision-outdated" "Precondition failed: the revision has changed"
        "Nothing was done. Read the template again, check whether the change still makes sense, and send its new ETag as If-Match, or a decision with its new `version`.";
    CategoryLocked CONFLICT "category-locked" "The category is fixed"
        "Nothing was done. Omit `category` from an edit. Create a template with the category that the other languages of its name have.";
    MoveNotPossible CONFLICT "move-not-possible" "The status of the template does not allow this"
        "Nothing was done. `possible` lists the allowed actions.";
    LimitReached TOO_MANY_REQUESTS "limit-reached" "The account has reached a limit"
        "Nothing was done. Wait, delete what you do not need, or ask the operator to raise the limit.";
    TooManyRequests TOO_MANY_REQUESTS "too-many-requests" "The account sends too many requests"
        "Nothing was done. Send the request again after the time in Retry-After, and fewer at a time.";
    TooManyFailures TOO_MANY_REQUESTS "too-many-failures" "Too many credentials from this address have failed"
        "Check the access token and the API key. Valid credentials are accepted without waiting.";
    NotLive CONFLICT "not-live" "The template has no live version"
        "Wait until a version is approved, or until the hold ends.";
    EventsForgotten GONE "events-forgotten" "Some of these events are no longer stored"
        "Galley has deleted the events before `oldest`. Read the templates again, then follow the events with `after` set to `oldest` minus 1, or without `after`.";
    EventUnknown NOT_FOUND "event-unknown" "The event does not exist"
        "Check the number. `events` lists the events of the account.";
    WebhookUnknown NOT_FOUND "webhook-unknown" "The endpoint does not exist"
        "Check the id. The account of this API key and token has no endpoint with it.";
    InvalidWebhook UNPROCESSABLE_ENTITY "invalid-webhook" "The document about the endpoint is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    TooManyWebhooks CONFLICT "too-many-webhooks" "The account has the maximum number of endpoints"
        "Nothing was done. Delete an endpoint that you no longer need, or change its URL. A faithful emulator account has one endpoint in Meta's format.";
    CredentialUnknown NOT_FOUND "credential-unknown" "The token in the path does not exist"
        "Check the id. The account of this API key and token has no token with it.";
    InvalidTokenDocument UNPROCESSABLE_ENTITY "invalid-token-document" "The document about the token is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    TokenExceedsCaller FORBIDDEN "token-exceeds-caller" "The new token would permit more than the calling token"
        "Nothing was done. Ask for scopes that the calling token has, and for an expiry that is not later than its own. `galley token create` creates other tokens.";
    TooManyTokens CONFLICT "too-many-tokens" "The account has the maximum number of tokens"
        "Nothing was done. An account has at most 100 tokens that are active or were created within the last hour. Revoke a token that you no longer need, and try again later.";
    InvalidEmulatorDocument UNPROCESSABLE_ENTITY "invalid-emulator-document" "The document about the emulator is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    ClockBackwards CONFLICT "clock-backwards" "The clock never moves back"
        "Nothing was done. Choose a time after the one that the clock shows, or move it with `advance`.";
    FaultUnknown NOT_FOUND "fault-unknown" "The fault does not exist"
        "Check the id. `GET {base}/emulator/faults` lists the faults of the account.";
    TooManyFaults CONFLICT "too-many-faults" "The account has the maximum number of faults"
        "Nothing was done. The account has 100 faults that can still strike. Delete the ones that you no longer need.";
    RotationOpen CONFLICT "rotation-open" "The previous rotation has not ended"
        "Nothing was done. Both secrets are valid until `until`. Wait until then, or send `force` if no receiver uses the oldest secret any more.";
    Busy SERVICE_UNAVAILABLE "busy" "Too many requests are queued"
        "Nothing was done. Try again after the time in Retry-After.";
    TooMuchInFlight SERVICE_UNAVAILABLE "too-much-in-flight" "The account has too many bytes in flight"
        "Nothing was done. Read the responses to your other requests, send fewer large requests at a time, and try again after the time in Retry-After.";
    StorageFull SERVICE_UNAVAILABLE "storage-full" "The storage is full"
        "Nothing was done. The operator has to free space; after that, writes work again.";
    Unavailable SERVICE_UNAVAILABLE "unavailable" "The database is unavailable"
        "Nothing was done. Try again after the time in Retry-After.";
    OutcomeUnknown SERVICE_UNAVAILABLE "outcome-unknown" "The outcome of the request is unknown"
        "Send the request again with the same Idempotency-Key or the same If-Match. It takes effect at most once.";
    Deadline SERVICE_UNAVAILABLE "deadline" "The request took too long"
        "It may still complete. Send it again with the same Idempotency-Key or the same If-Match. It takes effect at most once.";
    NotReady SERVICE_UNAVAILABLE "not-ready" "This instance does not accept requests"
        "Send requests to another instance, or wait.";
    DamagedData INTERNAL_SERVER_ERROR "damaged-data" "Stored data is damaged"
        "Galley shows no data that differs from what was stored. Report the request_id to the operator, who has to restore a backup; the log names the damaged row.";
    Internal INTERNAL_SERVER_ERROR "internal" "Internal server error"
        "Report the request_id to the operator. The log contains the cause.";
}
