//! One request and its response: look up, check, connect, send, and read no more than the caps allow.

use super::address;
use crate::clock;
use crate::grants::HostGrant;
use bytes::Bytes;
use http::Uri;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, WasiBody};

/// What a response's head may take, in bytes. Its fields are held by the host on the guest's behalf.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;

/// Bounds of one exchange, and whom to tell when one is met.
pub(crate) struct Caps {
    /// For all of it, in milliseconds.
    pub(crate) time_ms: u64,
    /// For the body of the request.
    pub(crate) request_bytes: u64,
    /// For the body of the response.
    pub(crate) response_bytes: u64,
    /// Told which cap was met.
    pub(crate) met: Arc<dyn Fn(Met) + Send + Sync>,
}

/// Which cap was met, or which addresses of the host are not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Time,
    RequestBytes,
    ResponseBytes,
    Addresses(Vec<IpAddr>),
}

type Answer = (http::Response<WasiBody>, Driver);

/// Keeps the connection going until the response is read.
pub(crate) type Driver = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// Send a request to the host of its grant. Dropping the future, or the response, closes the connection.
pub(crate) async fn exchange(
    request: http::Request<WasiBody>,
    grant: HostGrant,
    caps: Caps,
) -> Result<Answer, Error> {
    let mut time = Box::pin(clock::sleep(Duration::from_millis(caps.time_ms)));
    let met = caps.met.clone();
    let request = request.map(|body| {
        let met = met.clone();
        let full = move || {
            met(Met::RequestBytes);
            Error::HttpRequestBodySize(Some(caps.request_bytes))
        };
        Capped::new(body, caps.request_bytes, full).boxed_unsync()
    });
    let (response, driver) = tokio::select! {
        answer = send(request, &grant, &met) => answer?,
        () = &mut time => {
            met(Met::Time);
            return Err(Error::HttpResponseTimeout);
        }
    };
    let response = response.map(|body| {
        let full = move || {
            met(Met::ResponseBytes);
            Error::HttpResponseBodySize(Some(caps.response_bytes))
        };
        let body = Capped::new(body.map_err(Error::from), caps.response_bytes, full);
        let met = caps.met;
        Timed { body, time, met }.boxed_unsync()
    });
    Ok((response, driver))
}

async fn send(
    mut request: http::Request<WasiBody>,
    grant: &HostGrant,
    met: &Arc<dyn Fn(Met) + Send + Sync>,
) -> Result<(http::Response<hyper::body::Incoming>, Driver), Error> {
    let stream = connect(grant, met).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await?;
    let driver = wasmtime_wasi::runtime::spawn(async move {
        // What goes wrong here, the sender or the body says too.
        let _ = connection.await;
    });
    // Without a proxy the first line has the path alone.
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    let response = sender.send_request(request).await?;
    let driver = async move {
        // The sender lives as long as the connection is wanted.
        let _sender = sender;
        driver.await;
        Ok(())
    };
    Ok((response, Box::new(driver)))
}

/// A stream of bytes, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn connect(
    grant: &HostGrant,
    met: &Arc<dyn Fn(Met) + Send + Sync>,
) -> Result<Box<dyn Stream>, Error> {
    let found = addresses(grant).await?;
    let found = found.into_iter().take(ADDRESSES_MAX);
    let (allowed, refused): (Vec<_>, Vec<_>) =
        found.partition(|address| address::is_allowed(address.ip(), &grant.addresses));
    let mut failed = Error::DestinationNotFound;
    if !refused.is_empty() {
        met(Met::Addresses(refused.iter().map(SocketAddr::ip).collect()));
        failed = Error::DestinationIpProhibited;
    }
    for address in allowed {
        match TcpStream::connect(address).await {
            Ok(stream) if grant.tls => return Ok(Box::new(encrypt(grant, stream).await?)),
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) => failed = Error::Connect(error),
        }
    }
    Err(failed)
}

/// The addresses of the granted host; looked up here and nowhere else.
async fn addresses(grant: &HostGrant) -> Result<Vec<SocketAddr>, Error> {
    let host = grant.host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, grant.port)]);
    }
    let found = lookup_host((host, grant.port)).await;
    let found = found.map_err(|_| Error::DnsError {
        rcode: None,
        info_code: None,
    })?;
    Ok(found.collect())
}

/// The certificates of authorities in a text (PEM), each in its binary form (DER).
///
/// # Errors
/// What is wrong with them.
pub fn read_authorities(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = read.map_err(|error| error.to_string())?;
    let ders: Vec<Vec<u8>> = found.iter().map(|one| one.as_ref().to_vec()).collect();
    if ders.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    roots(&ders).map_err(|error| error.to_string())?;
    Ok(ders)
}

/// Whom to trust: these authorities, or, if there are none, the public ones.
fn roots(authorities: &[Vec<u8>]) -> Result<RootCertStore, rustls::Error> {
    let mut store = RootCertStore::empty();
    if authorities.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for authority in authorities {
        store.add(CertificateDer::from_slice(authority))?;
    }
    Ok(store)
}

async fn encrypt(grant: &HostGrant, stream: TcpStream) -> Result<impl Stream + use<>, Error> {
    let roots = roots(&grant.authorities).map_err(|_| Error::ConfigurationError)?;
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| Error::ConfigurationError)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let host = grant.host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::ConfigurationError)?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(Error::Tls)
}

/// A body that ends with an error when it has given more bytes than it may.
struct Capped<B, F> {
    body: B,
    left_bytes: u64,
    full: F,
}

impl<B, F> Capped<B, F> {
    fn new(body: B, left_bytes: u64, full: F) -> Self {
        Self {
            body,
            left_bytes,
            full,
        }
    }
}

impl<B, F> Body for Capped<B, F>
where
    B: Body<Data = Bytes, Error = Error> + Unpin,
    F: Fn() -> Error + Unpin,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => 0,
        };
        if bytes > self.left_bytes {
            return Poll::Ready(Some(Err((self.full)())));
        }
        self.left_bytes -= bytes;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// A body that ends with an error when its time is over.
struct Timed<B> {
    body: B,
    time: Pin<Box<dyn Future<Output = ()> + Send>>,
    met: Arc<dyn Fn(Met) + Send + Sync>,
}

impl<B: Body<Data = Bytes, Error = Error> + Unpin> Body for Timed<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        std::task::ready!(self.time.as_mut().poll(context));
        (self.met)(Met::Time);
        Poll::Ready(Some(Err(Error::HttpResponseTimeout)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
