//! Listens to a client that nobody here wrote: a proxy that passes every byte on and keeps a copy, to be judged at the end.

use crate::client::messages_of;
use crate::era::Said;
use crate::http::{Body, Head};
use crate::schema::Source;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

type Copy = Arc<Mutex<Vec<u8>>>;

/// The proxy.
#[derive(Debug)]
pub struct Tap {
    address: SocketAddr,
    /// What client and server sent on each connection.
    heard: Arc<Mutex<Vec<(Copy, Copy)>>>,
}

impl Tap {
    /// Listens between a client and the server at this address, until the process ends.
    ///
    /// # Panics
    /// If there is no port.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::clone(&heard);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                let copies = (Copy::default(), Copy::default());
                connections.lock().unwrap().push(copies.clone());
                pass_on(&client, &server, copies.0);
                pass_on(&server, &client, copies.1);
            }
        });
        Self { address, heard }
    }

    /// Where the client finds it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Judges all that was said, and tells the methods that were called.
    ///
    /// # Panics
    /// If the schemas find a fault.
    pub fn judge(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let mut methods = Vec::new();
        for (sent, received) in heard.iter() {
            let sent = sent.lock().unwrap().clone();
            let received = received.lock().unwrap().clone();
            methods.extend(judge_connection(sent, received).unwrap());
        }
        methods
    }
}

fn pass_on(from: &TcpStream, to: &TcpStream, copy: Copy) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let mut piece = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            copy.lock().unwrap().extend(&piece[..length]);
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

fn judge_connection(sent: Vec<u8>, received: Vec<u8>) -> io::Result<Vec<String>> {
    let mut sent = BufReader::new(Cursor::new(sent));
    let mut received = BufReader::new(Cursor::new(received));
    let mut methods = Vec::new();
    while let Some(head) = Head::read(&mut sent)? {
        let body = Body::of_request(&head).read_all(&mut sent)?;
        // GET and DELETE are of a session, and say nothing more.
        let said = if head.start.starts_with("POST ") {
            let said = Said::of(&serde_json::from_slice(&body)?);
            let verdict = said.verdict(Source::Latest);
            verdict.unwrap_or_else(|fault| panic!("the client's message: {fault}"));
            said
        } else {
            Said::default()
        };
        // A client that has what it wants may go before the end of the reply.
        let Some(head) = Head::read(&mut received)? else {
            break;
        };
        let (body, is_whole) = what_came(Body::of_response(&head), &mut received)?;
        let streamed = head.header("content-type") == Some("text/event-stream");
        if is_whole || streamed {
            for message in messages_of(&head, &body) {
                said.reply(Source::Latest, &message)
                    .unwrap_or_else(|fault| panic!("reply to {}: {fault}", said.method));
            }
        }
        methods.push(said.method);
        if !is_whole {
            break;
        }
    }
    Ok(methods)
}

/// A body as far as it came, and whether that is all of it: the client may have left.
fn what_came(mut body: Body, from: &mut impl BufRead) -> io::Result<(Vec<u8>, bool)> {
    let mut came = Vec::new();
    loop {
        match body.read(from) {
            Ok(Some(piece)) => came.extend(piece),
            Ok(None) => return Ok((came, true)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok((came, false)),
            Err(error) => return Err(error),
        }
    }
}
