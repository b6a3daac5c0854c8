//! The import `wasi:http/outgoing-handler`: which requests may leave, and under which limits.
//!
//! A request that is not granted is refused before anything of the world is asked, so a replay refuses it too. One that is
//! granted is an effect. It must not know how a request is sent.

use super::Guest;
use super::effect::Permission;
use super::refusal::{Refusals, Remedy};
use crate::grants::{Grants, HostGrant};
use crate::limits::{Limit, Limits};
use crate::outbound::{Caps, Met, Target, exchange};
use ipnet::IpNet;
use std::sync::Arc;
use wasmtime::component::{Linker, Resource};
use wasmtime::{Result, StoreContextMut};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Scheme};
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::p2::{HttpError, HttpResult};
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

/// What one write to a request's body may hold, in bytes; two are kept by the host.
const CHUNK_BYTES: usize = 64 << 10;

/// Requests of one guest.
pub(crate) struct Outbound {
    context: WasiHttpCtx,
    hooks: Hooks,
    sent: u32,
}

struct Hooks {
    grants: Arc<Grants>,
    refusals: Refusals,
    time_ms: u64,
    request_bytes: u64,
    response_bytes: u64,
    /// What `handle` has found granted, for the request that it passes on.
    next: Option<(HostGrant, Permission)>,
}

impl Outbound {
    pub(super) fn new(limits: &Limits, grants: &Arc<Grants>, refusals: &Refusals) -> Self {
        let mut context = WasiHttpCtx::new();
        let field_bytes = usize::try_from(limits.http_field_bytes).unwrap_or(usize::MAX);
        context.set_field_size_limit(field_bytes);
        Self {
            context,
            hooks: Hooks {
                grants: grants.clone(),
                refusals: refusals.clone(),
                time_ms: limits.http_time_ms,
                request_bytes: limits.http_request_bytes,
                response_bytes: limits.http_response_bytes,
                next: None,
            },
            sent: 0,
        }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.outbound.hooks,
            table: &mut self.table,
            ctx: &mut self.outbound.context,
        }
    }
}

/// The name under which wasmtime-wasi-http links the interface. Were it another one, `handle` would find nothing granted.
const HANDLER: &str = "wasi:http/outgoing-handler@0.2.12";

pub(super) fn link(linker: &mut Linker<Guest>) -> Result<()> {
    type Asked = (
        Resource<HostOutgoingRequest>,
        Option<Resource<RequestOptions>>,
    );
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    linker.instance(HANDLER)?.func_wrap(
        "handle",
        |mut store: StoreContextMut<'_, Guest>, (request, options): Asked| {
            let handled = store.data_mut().handle(request, options);
            let handled = match handled {
                Ok(response) => Ok(response),
                Err(error) => Err(error.downcast()?),
            };
            Ok((handled,))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

impl Guest {
    fn handle(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        options: Option<Resource<RequestOptions>>,
    ) -> HttpResult<Resource<HostFutureIncomingResponse>> {
        match self.admit(&request) {
            Ok(granted) => self.outbound.hooks.next = Some(granted),
            Err(refused) => {
                self.table.delete(request)?;
                return Err(refused);
            }
        }
        outgoing_handler::Host::handle(&mut self.http(), request, options)
    }

    fn admit(
        &mut self,
        request: &Resource<HostOutgoingRequest>,
    ) -> HttpResult<(HostGrant, Permission)> {
        let asked = self.table.get(request)?;
        let authority = asked.authority.as_deref().unwrap_or_default();
        let tls = match &asked.scheme {
            None | Some(Scheme::Https) => true,
            Some(Scheme::Http) => false,
            Some(Scheme::Other(_)) => return Err(ErrorCode::HttpProtocolError.into()),
        };
        let Some(target) = Target::read(tls, authority) else {
            return Err(ErrorCode::HttpRequestUriInvalid.into());
        };
        let Some(grant) = target.grant(&self.seat.grants).cloned() else {
            let line = self.seat.grants.line_with_host(&target.wanted());
            let wish = format!("an HTTP request to {target}");
            self.refusals.deny(&wish, Remedy::line("hosts", line));
            return Err(ErrorCode::HttpRequestDenied.into());
        };
        if self.outbound.sent >= self.limits().http_requests {
            self.refusals.exceed(Limit::HttpRequests);
            return Err(ErrorCode::ConnectionLimitReached.into());
        }
        let permission = self.pin().map_err(HttpError::trap)?;
        let Some(permission) = permission else {
            return Err(ErrorCode::HttpRequestDenied.into());
        };
        self.outbound.sent += 1;
        Ok((grant, permission))
    }
}

type Sent = (
    http::Response<WasiBody>,
    Box<dyn Future<Output = std::result::Result<(), Error>> + Send>,
);

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Box<dyn Future<Output = std::result::Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = std::result::Result<Sent, Error>> + Send> {
        let next = self.next.take();
        let caps = self.caps(next.as_ref().map(|(grant, _)| grant));
        Box::new(async move {
            let (grant, permission) = next.ok_or(Error::HttpRequestDenied)?;
            permission.granted().await;
            exchange(request, grant, caps).await
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    // Without these the operator's log would have a line for each failed request, as many as a guest likes.
    fn p2_error_from_hyper(&mut self, error: &hyper::Error) -> ErrorCode {
        tracing::debug!(%error, "a request of a plugin failed");
        ErrorCode::HttpProtocolError
    }

    fn p2_error_from_connect(&mut self, error: &std::io::Error) -> ErrorCode {
        tracing::debug!(%error, "a request of a plugin found no connection");
        ErrorCode::ConnectionRefused
    }

    fn p2_error_from_tls(&mut self, error: &std::io::Error) -> ErrorCode {
        tracing::debug!(%error, "a request of a plugin found no trustworthy host");
        ErrorCode::TlsCertificateError
    }
}

impl Hooks {
    fn caps(&self, grant: Option<&HostGrant>) -> Caps {
        let refusals = self.refusals.clone();
        let (grants, grant) = (self.grants.clone(), grant.cloned());
        let met = move |met| match met {
            Met::Time => refusals.exceed(Limit::HttpTime),
            Met::RequestBytes => refusals.exceed(Limit::HttpRequestBytes),
            Met::ResponseBytes => refusals.exceed(Limit::HttpResponseBytes),
            Met::Addresses(addresses) => {
                let Some(grant) = &grant else { return };
                let more = HostGrant {
                    addresses: addresses.into_iter().map(IpNet::from).collect(),
                    ..grant.clone()
                };
                let line = grants.line_with_host(&more);
                // The address itself is the operator's to know.
                let wish = format!(
                    "an HTTP request to {grant}, which is at an address that is not public"
                );
                refusals.deny(&wish, Remedy::line("hosts", line));
            }
        };
        Caps {
            time_ms: self.time_ms,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            met: Arc::new(met),
        }
    }
}
