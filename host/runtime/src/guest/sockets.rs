//! The imports `wasi:sockets`: nothing grants them, and who tries is told so.
//!
//! wasmtime-wasi would refuse the same, but say nothing of it.

use super::Guest;
use super::refusal::Remedy;
use wasmtime::component::{ComponentNamedList, Lift, Linker, Lower, Resource};
use wasmtime::{Result, StoreContextMut};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, Network};
use wasmtime_wasi::p2::bindings::sockets::{tcp::TcpSocket, udp::UdpSocket};

/// The version under which wasmtime-wasi links the interfaces.
const VERSION: &str = "0.2.12";

type Refused<T> = std::result::Result<Resource<T>, ErrorCode>;

pub(super) fn link(linker: &mut Linker<Guest>) -> Result<()> {
    linker.allow_shadowing(true);
    refuse::<(IpAddressFamily,), TcpSocket>(
        linker,
        ("tcp-create-socket", "create-tcp-socket"),
        |_| "a TCP socket".to_owned(),
    )?;
    refuse::<(IpAddressFamily,), UdpSocket>(
        linker,
        ("udp-create-socket", "create-udp-socket"),
        |_| "a UDP socket".to_owned(),
    )?;
    refuse::<(Resource<Network>, String), ResolveAddressStream>(
        linker,
        ("ip-name-lookup", "resolve-addresses"),
        |(_, name)| format!("a look-up of the host {name}"),
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Refuse a function of an interface, and tell what was wanted.
fn refuse<Asked, Wanted>(
    linker: &mut Linker<Guest>,
    (interface, function): (&str, &str),
    wish: fn(Asked) -> String,
) -> Result<()>
where
    Asked: ComponentNamedList + Lift + 'static,
    Wanted: 'static,
    (Refused<Wanted>,): ComponentNamedList + Lower,
{
    let name = format!("wasi:sockets/{interface}@{VERSION}");
    linker.instance(&name)?.func_wrap(
        function,
        move |store: StoreContextMut<'_, Guest>, asked: Asked| {
            store.data().refusals.deny(&wish(asked), Remedy::NoSockets);
            Ok((Refused::<Wanted>::Err(ErrorCode::AccessDenied),))
        },
    )
}
