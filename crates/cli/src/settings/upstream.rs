//! The settings of connections to providers.

use std::{sync::Arc, time::Duration};

use galley_server::{
    Clock,
    delivery::{HttpWebhookClient, Keyring, SsrfGuard, SsrfPolicy, SystemResolver, trusted_roots},
    upstream::{
        HttpTransport, RefusedFields, SampleSettings, UpstreamContext, UpstreamSettings,
        UpstreamWaker,
    },
};
use galley_store::Store;

use super::Resolver;
use crate::secrets::SystemRandom;

/// Settings of connections to providers.
#[derive(Debug)]
pub(crate) struct ProviderSettings {
    /// Whether providers may be in private networks and use plain http.
    pub(crate) allow_private: bool,
    /// Whether this process works on connections.
    pub(crate) sync: bool,
    /// How often and how much it calls.
    pub(crate) limits: UpstreamSettings,
    /// The bytes that all files of an account may take.
    pub(crate) media_bytes: u64,
}

impl ProviderSettings {
    /// Checks the addresses of providers.
    pub(crate) fn guard(&self) -> SsrfGuard {
        let policy = SsrfPolicy { allow_private: self.allow_private };
        SsrfGuard::new(policy, Arc::new(SystemResolver::new()))
    }

    /// What work on connections needs.
    pub(crate) fn context(
        &self,
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        keyring: Keyring,
    ) -> UpstreamContext {
        // Each exchange has a deadline of its own.
        let client = HttpWebhookClient::new(self.guard(), Duration::ZERO, trusted_roots());
        let transports = HttpTransport::factory(Arc::new(client));
        let waker = UpstreamWaker::default();
        let samples = SampleSettings::new(Arc::new(SystemRandom), self.media_bytes);
        let settings = self.limits;
        let refused_fields = RefusedFields::default();
        UpstreamContext {
            store,
            clock,
            transports,
            keyring,
            settings,
            samples,
            waker,
            refused_fields,
        }
    }
}

impl Resolver<'_> {
    pub(super) fn upstream(&mut self, media_bytes: u64) -> ProviderSettings {
        let flag = |text: &str| text.parse().ok();
        let minutes = |minutes| Duration::from_mins(minutes);
        ProviderSettings {
            allow_private: self.read("upstream_allow_private", "true or false", flag),
            sync: self.read("upstream_sync", "true or false", flag),
            limits: UpstreamSettings {
                sweep_interval: self.within(
                    "upstream_sweep_interval",
                    "a duration from 1m to 24h",
                    minutes(1),
                    minutes(24 * 60),
                ),
                calls_per_hour: self.read(
                    "upstream_calls_per_hour",
                    "a number from 30 to 100000",
                    // An edit of a template with ten samples needs 22 calls at once.
                    |text| text.parse().ok().filter(|number| (30..=100_000).contains(number)),
                ),
                lease: self.within(
                    "upstream_lease",
                    "a duration from 5s to 1h",
                    Duration::from_secs(5),
                    minutes(60),
                ),
                ..UpstreamSettings::default()
            },
            media_bytes,
        }
    }
}
