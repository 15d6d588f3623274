//! Questions to the provider that leave the mirror as it is. Only a failure is recorded, so that the
//! state of the connection is known.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use galley_domain::upstream::{
    RemoteId, RemoteTemplate, SweepProgress, SweepVerdict,
    sweep::{PageCounts, SWEEPS_UNTIL_GONE, SeenTemplates, verdict},
};
use galley_store::{MirroredTemplate, PageRecord, UpstreamConnection};
use galley_upstream::{CheckReport, GraphUpstream, Secret, TokenInfo, Upstream as _};
use jiff::Timestamp;

use super::{
    pages::Pages,
    session::{Session, SyncError, UpstreamContext, dialect, kept},
    sweep::SweepPart,
};

/// All templates at the provider, with their components.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// When the walk began.
    pub began_at: Timestamp,
    /// The pages.
    pub pages: Vec<PageRecord>,
    /// How complete the walk was.
    pub progress: SweepProgress,
}

impl Walked {
    /// The templates, each once.
    pub fn templates(&self) -> BTreeMap<&RemoteId, &RemoteTemplate> {
        let templates = self.pages.iter().flat_map(|page| &page.templates);
        templates.map(|it| (&it.id, it)).collect()
    }

    /// How many more the provider has that cannot be read.
    pub fn unreadable(&self) -> u32 {
        self.pages.iter().map(|page| page.unreadable).fold(0, u32::saturating_add)
    }

    /// What the walk would mean as a sweep, given the mirror: its verdict, and how many templates it
    /// does not have.
    pub fn verdict(&self, mirror: &[MirroredTemplate]) -> (SweepVerdict, u32) {
        let seen = self.templates();
        let is_known = |row: &&MirroredTemplate| {
            row.is_present() && row.missing < SWEEPS_UNTIL_GONE && !row.is_generated()
        };
        let known = || mirror.iter().filter(is_known);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let missing = count(known().filter(|row| !seen.contains_key(&row.id)).count());
        (verdict(count(known().count()), missing, self.progress), missing)
    }
}

/// What a check of a connection found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The account.
    pub report: CheckReport,
    /// The token, if the provider tells about it.
    pub token: Option<TokenInfo>,
}

impl Session {
    /// Reads the account at the provider, counts its templates, and records when the token expires.
    pub fn check(&self) -> BoxFuture<'_, Result<Checked, SyncError>> {
        Box::pin(async move {
            match self.while_leased(self.upstream.check()).await? {
                Ok(report) => {
                    self.recovered().await?;
                    Ok(Checked { report, token: self.inspect_token().await? })
                }
                Err(failure) => Err(self.failed(failure).await?),
            }
        })
    }

    /// Asks the provider about the token and records when it expires; `None` if the provider does not
    /// tell, which is no failure of the connection.
    pub async fn inspect_token(&self) -> Result<Option<TokenInfo>, SyncError> {
        let info = self.while_leased(self.upstream.token_info()).await?;
        let info = info.ok().filter(|info| info.is_valid);
        if let Some(info) = &info {
            let expiry = self.context.store.record_token_expiry(self.fence, info.expires_at);
            kept(expiry.await?)?;
        }
        Ok(info)
    }

    /// Reads all templates at the provider with their components.
    pub fn walk<'s>(
        &'s self,
        report: &'s mut (dyn FnMut(SweepPart) + Send),
    ) -> BoxFuture<'s, Result<Walked, SyncError>> {
        Box::pin(async move {
            let mut pages = Pages::new(self, true, None);
            let mut walked = Walked { began_at: self.now(), ..Walked::default() };
            let mut seen = SeenTemplates::default();
            let mut is_recount = false;
            loop {
                let (page, restarted) = pages.next().await?;
                if restarted {
                    let progress = SweepProgress { restarted, ..SweepProgress::default() };
                    walked = Walked { progress, pages: Vec::new(), ..walked };
                    seen = SeenTemplates::default();
                }
                let is_last = is_recount || page.after.is_none();
                let page =
                    if is_recount { self.recounted(page) } else { self.seen_now(page, restarted) };
                let counts = seen.count(&page.templates);
                let counts =
                    PageCounts { unreadable: page.unreadable, total: page.total, ..counts };
                walked.progress = walked.progress.after_page(counts);
                walked.pages.push(page);
                report(SweepPart {
                    seen: walked.progress.seen.into(),
                    total: walked.progress.total,
                });
                self.extend().await?;
                if !is_last && !walked.progress.is_endless() {
                    continue;
                }
                walked.progress.failed = !is_last;
                if is_recount || !walked.progress.needs_recount() {
                    self.recovered().await?;
                    return Ok(walked);
                }
                // Templates were created or deleted meanwhile: the first page tells how many there are now.
                is_recount = true;
            }
        })
    }
}

/// Checks a token that is to replace the one of a connection. The check needs no lease and no budget,
/// because calls may rest until the token is replaced.
pub fn check_token<'s>(
    context: &'s UpstreamContext,
    connection: &'s UpstreamConnection,
    token: String,
) -> BoxFuture<'s, Result<Checked, SyncError>> {
    Box::pin(async move {
        let transport = (context.transports)(connection.account);
        let upstream =
            GraphUpstream::new(transport, dialect(context, connection)?, Secret::new(token));
        let report = upstream.check().await.map_err(SyncError::Call)?;
        let token = upstream.token_info().await.ok().filter(|info| info.is_valid);
        Ok(Checked { report, token })
    })
}
