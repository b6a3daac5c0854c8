//! A host that guests may or may not reach: a few paths of HTTP/1.1, each with a behaviour of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A listening host. It ends with the process of the tests.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// Listens on a free port of this machine.
    ///
    /// # Panics
    /// If there is none.
    pub fn start() -> Self {
        Self::listen(serve)
    }

    /// The same, encrypted: as `localhost`, with a certificate of [`authority`].
    ///
    /// # Panics
    /// If there is none.
    pub fn start_encrypted() -> Self {
        let config = Arc::new(encryption());
        Self::listen(move |stream, seen| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            serve(StreamOwned::new(connection, stream), seen);
        })
    }

    fn listen(serve: impl Fn(TcpStream, &Mutex<Vec<String>>) + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::default();
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, serve) = (Arc::clone(&kept), serve.clone());
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Self { address, seen }
    }

    /// A URL of a path, with the address as host.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The first line of each request that came.
    ///
    /// # Panics
    /// If a thread of it has.
    pub fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// The folder with the certificates. Nobody but these tests trusts them.
fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("certificates")
}

/// The file with the certificate of the authority that an encrypted origin has its own from.
pub fn authority() -> PathBuf {
    certificates().join("authority.pem")
}

fn encryption() -> ServerConfig {
    let read = |name| fs::read(certificates().join(name)).unwrap();
    let certificate = CertificateDer::from_pem_slice(&read("host.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&read("host.key.pem")).unwrap();
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

/// Answers one request. What goes wrong here is the client's doing, or what the test is about.
fn serve(stream: impl Read + Write, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        head += &line;
    }
    let first = head.lines().next().unwrap_or_default().to_owned();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().unwrap().push(first);
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let _ = answer(reader.get_mut(), &path);
}

fn answer(stream: &mut (impl Read + Write), path: &str) -> std::io::Result<()> {
    if let Some(location) = path.strip_prefix("/redirect?") {
        return write!(
            stream,
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        );
    }
    match path {
        "/silent" => {
            // Until the other side is gone.
            stream.read_to_end(&mut Vec::new()).map(|_| ())
        }
        "/endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            loop {
                stream.write_all(b"400\r\n")?;
                stream.write_all(&[b'x'; 1024])?;
                stream.write_all(b"\r\n")?;
            }
        }
        "/fields" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            for number in 0..100_000 {
                write!(stream, "X-Field-{number}: {number:0100}\r\n")?;
            }
            stream.write_all(b"Content-Length: 0\r\n\r\n")
        }
        _ => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    }
}
