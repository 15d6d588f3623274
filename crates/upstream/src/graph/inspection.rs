//! Asks the provider about the token.

use galley_domain::upstream::{CallFailure, CallKind};

use super::GraphUpstream;
use crate::{
    response,
    secret::Secret,
    transport::{Method, Transport},
    upstream::TokenInfo,
};

impl<T: Transport> GraphUpstream<T> {
    /// Lets the token inspect itself, and if it may not, the app.
    pub(super) async fn inspect_token(&self) -> Result<TokenInfo, CallFailure> {
        let own = self.inspect_as(&self.token).await;
        match (own, self.dialect.app_token()) {
            (Err(CallFailure::Credentials(_) | CallFailure::Refused(_)), Some(app)) => {
                self.inspect_as(&app).await
            }
            (own, _) => own,
        }
    }

    /// Asks as the owner of another token. The API takes the token to inspect only in the query, which
    /// no error and no `Debug` form shows.
    async fn inspect_as(&self, caller: &Secret) -> Result<TokenInfo, CallFailure> {
        let kind = CallKind::Check;
        let query = [("input_token", self.token.expose())];
        let mut request = self.request(kind, Method::Get, &["debug_token"], &[]);
        request.url = self.dialect.url(&["debug_token"], &query, caller);
        request.headers[0] = self.dialect.auth_header(caller, false);
        let response = self.call(kind, request).await?;
        response::token_info(&response.body).ok_or_else(|| self.failure(kind, &response))
    }
}
