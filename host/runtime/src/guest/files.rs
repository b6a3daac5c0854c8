//! The imports `wasi:filesystem`: the granted folders, and a root that holds nothing.
//!
//! wasmtime-wasi does the work, on handles of the system that cannot be left (cap-std). Here stands what it cannot know: that a
//! change is an effect, and that what lies outside of all grants was wanted. For that every guest has a folder `/`, so that
//! a path which no grant covers comes to the host, and can be named to the caller.

use super::Guest;
use super::refusal::Remedy;
use crate::files;
use crate::grants::DirectoryGrant;
use std::fs::File;
use std::sync::Arc;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime::{Result, format_err};
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, OpenMode, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream,
    ErrorCode, Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp,
    OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

/// What the root stands on: it is never read, and always there.
const NOTHING: &str = "/dev/null";

/// The folders of one guest, opened when it first asks for them.
#[derive(Default)]
pub(crate) struct Folders {
    root: Option<Dir>,
    granted: Vec<(Dir, DirectoryGrant)>,
}

type Fd = Resource<Descriptor>;

pub(super) fn link(linker: &mut Linker<Guest>) -> Result<()> {
    linker.allow_shadowing(true);
    preopens::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    types::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl Folders {
    fn open(grants: &[DirectoryGrant]) -> Result<Self> {
        let root = Dir::new(
            File::open(NOTHING)?,
            FsPerms::ReadOnly,
            OpenMode::READ,
            false,
        );
        let open = |grant: &DirectoryGrant| {
            let folder = files::open_folder(&grant.host).map_err(|error| {
                tracing::warn!(folder = %grant.host.display(), %error, "a granted folder cannot be opened");
                format_err!("the granted folder {} is not there", grant.guest)
            })?;
            let (perms, mode) = if grant.write {
                (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE)
            } else {
                (FsPerms::ReadOnly, OpenMode::READ)
            };
            Ok((Dir::new(folder, perms, mode, false), grant.clone()))
        };
        Ok(Self {
            root: Some(root),
            granted: grants.iter().map(open).collect::<Result<_>>()?,
        })
    }

    fn is_root(&self, descriptor: &Descriptor) -> bool {
        matches!((descriptor, &self.root), (Descriptor::Dir(dir), Some(root)) if Arc::ptr_eq(&dir.dir, &root.dir))
    }

    fn grant(&self, descriptor: &Descriptor) -> Option<&DirectoryGrant> {
        let Descriptor::Dir(dir) = descriptor else {
            return None;
        };
        let is_it = |(granted, _): &&(Dir, DirectoryGrant)| Arc::ptr_eq(&granted.dir, &dir.dir);
        self.granted.iter().find(is_it).map(|(_, grant)| grant)
    }
}

impl preopens::Host for Guest {
    fn get_directories(&mut self) -> Result<Vec<(Fd, String)>> {
        if self.folders.root.is_none() {
            self.folders = Folders::open(&self.seat.grants.directories)?;
        }
        let granted = self.folders.granted.iter();
        let granted = granted.map(|(dir, grant)| (dir.clone(), grant.guest.clone()));
        let root = self
            .folders
            .root
            .iter()
            .map(|dir| (dir.clone(), "/".to_owned()));
        let mut directories = Vec::new();
        for (dir, path) in granted.chain(root).collect::<Vec<_>>() {
            let pushed = self.table.push(Descriptor::Dir(dir));
            let fd = pushed.map_err(|error| self.handles_full(error))?;
            directories.push((fd, path));
        }
        Ok(directories)
    }
}

/// What is wanted of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// To see what it is; refused without a word, for language runtimes look at many paths.
    Look,
    Read,
    /// To read what is in a folder.
    List,
    Change,
}

/// Where a guest sees a folder that the operator has yet to choose, if no better place is known.
const SOME_FOLDER: &str = "/some/folder";

/// A path without `.` and `..`, and whether it stays where it begins.
fn plain(path: &str) -> (String, bool) {
    let mut parts = Vec::new();
    let mut stays = !path.starts_with('/');
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => stays &= parts.pop().is_some(),
            part => parts.push(part),
        }
    }
    (format!("/{}", parts.join("/")), stays)
}

impl Guest {
    /// Whether this may be done there. A change waits until its effect is permitted.
    async fn permit(&mut self, fd: &Fd, path: &str, wish: Wish) -> FsResult<()> {
        let descriptor = self.table.get(fd).map_err(FsError::trap)?;
        if self.folders.is_root(descriptor) {
            return Err(self.deny_outside(path, wish).into());
        }
        if matches!(descriptor, Descriptor::Dir(_)) && wish != Wish::Look && !plain(path).1 {
            return Err(self.deny_way_out(descriptor, path, wish).into());
        }
        let perms = match descriptor {
            Descriptor::File(file) => file.perms,
            Descriptor::Dir(dir) => dir.perms,
        };
        if wish != Wish::Change {
            return Ok(());
        }
        if perms.write_not_permitted() {
            let grant = self.folders.grant(descriptor).cloned();
            return Err(self.deny_change(path, grant.as_ref()).into());
        }
        match self.pin().map_err(FsError::trap)? {
            Some(permission) => {
                permission.granted().await;
                Ok(())
            }
            None => Err(ErrorCode::NotPermitted.into()),
        }
    }

    fn deny_outside(&self, path: &str, wish: Wish) -> ErrorCode {
        let (path, _) = plain(path);
        let verb = match wish {
            Wish::Look => return ErrorCode::NoEntry,
            Wish::Read | Wish::List => "reading",
            Wish::Change => "writing",
        };
        let folder = match wish {
            Wish::List => path.as_str(),
            _ => path.rsplit_once('/').map_or("", |(folder, _)| folder),
        };
        // The root cannot be granted.
        let folder = if ["", "/"].contains(&folder) {
            SOME_FOLDER
        } else {
            folder
        };
        self.deny(
            &format!("{verb} {path}"),
            &DirectoryGrant {
                host: SOME_FOLDER.into(),
                guest: folder.to_owned(),
                write: wish == Wish::Change,
            },
        );
        ErrorCode::NotPermitted
    }

    /// A path leads out of the folder that it is looked up in.
    fn deny_way_out(&self, folder: &Descriptor, path: &str, wish: Wish) -> ErrorCode {
        match self.folders.grant(folder) {
            Some(grant) => self.deny_outside(&format!("{}/{path}", grant.guest), wish),
            // Where that folder is, is not known any more.
            None => self.deny_outside(path, wish),
        }
    }

    /// A link leads out of the folder that it is in. What it leads to is not known here.
    fn deny_link(&self, folder: &Fd, path: &str, wish: Wish) {
        let Ok(folder) = self.table.get(folder) else {
            return;
        };
        let verb = match wish {
            Wish::Change => "writing",
            _ => "reading",
        };
        let place = self.folders.grant(folder);
        let place = place.map_or_else(String::new, |grant| format!("{}/", grant.guest));
        self.deny(
            &format!("{verb} {place}{path}, a link that leads out of its folder"),
            &DirectoryGrant {
                host: SOME_FOLDER.into(),
                guest: SOME_FOLDER.to_owned(),
                write: wish == Wish::Change,
            },
        );
    }

    fn deny_change(&self, path: &str, grant: Option<&DirectoryGrant>) -> ErrorCode {
        let wish = match grant {
            Some(grant) => format!("writing {}/{path}, which it may only read", grant.guest),
            None => format!("writing {path} in a folder that it may only read"),
        };
        // A folder within a granted one: which, is known if there is only one.
        let grants = &self.seat.grants.directories;
        let mut unwritable = grants.iter().filter(|grant| !grant.write);
        let only = unwritable.next().filter(|_| unwritable.next().is_none());
        match grant.or(only) {
            Some(grant) => self.deny(
                &wish,
                &DirectoryGrant {
                    write: true,
                    ..grant.clone()
                },
            ),
            None => {
                let line = "write = true, for that folder in directories".to_owned();
                self.refusals.deny(&wish, Remedy::line("directories", line));
            }
        }
        ErrorCode::ReadOnly
    }

    fn deny(&self, wish: &str, more: &DirectoryGrant) {
        let line = self.seat.grants.line_with_folder(more);
        self.refusals.deny(wish, Remedy::line("directories", line));
    }
}

fn full(error: rustix::io::Errno) -> FsError {
    std::io::Error::from(error).into()
}

impl Guest {
    /// The same stream, but what is written to it counts.
    fn counted(
        &mut self,
        stream: Resource<DynOutputStream>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.table.delete(stream).map_err(FsError::trap)?;
        let counted = self.written.counted(stream);
        self.table.push(counted).map_err(FsError::trap)
    }
}

impl types::Host for Guest {
    fn convert_error_code(&mut self, error: FsError) -> Result<ErrorCode> {
        types::Host::convert_error_code(&mut self.filesystem(), error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.filesystem(), error)
    }
}

/// Functions that are checked, if a wish stands before them, and then passed on.
macro_rules! pass_on {
    ($(
        $([$wish:expr, $fd:ident, $path:expr])?
        fn $name:ident($first:ident: $first_type:ty $(, $rest:ident: $type:ty)*) -> $result:ty;
    )*) => {$(
        async fn $name(&mut self, $first: $first_type $(, $rest: $type)*) -> $result {
            $( self.permit(&$fd, $path, $wish).await?; )?
            HostDescriptor::$name(&mut self.filesystem(), $first $(, $rest)*).await
        }
    )*};
}

impl HostDescriptor for Guest {
    pass_on! {
        fn advise(fd: Fd, offset: Filesize, len: Filesize, advice: Advice) -> FsResult<()>;
        fn get_flags(fd: Fd) -> FsResult<DescriptorFlags>;
        fn get_type(fd: Fd) -> FsResult<DescriptorType>;
        fn is_same_object(one: Fd, other: Fd) -> Result<bool>;
        fn read(fd: Fd, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)>;
        fn sync(fd: Fd) -> FsResult<()>;
        fn sync_data(fd: Fd) -> FsResult<()>;

        [Wish::Look, fd, ""]
        fn metadata_hash(fd: Fd) -> FsResult<MetadataHashValue>;
        [Wish::Look, fd, &path]
        fn metadata_hash_at(fd: Fd, flags: PathFlags, path: String) -> FsResult<MetadataHashValue>;
        [Wish::Look, fd, &path]
        fn readlink_at(fd: Fd, path: String) -> FsResult<String>;
        [Wish::Look, fd, ""]
        fn stat(fd: Fd) -> FsResult<DescriptorStat>;
        [Wish::Look, fd, &path]
        fn stat_at(fd: Fd, flags: PathFlags, path: String) -> FsResult<DescriptorStat>;

        [Wish::List, fd, ""]
        fn read_directory(fd: Fd) -> FsResult<Resource<DirectoryEntryStream>>;

        [Wish::Change, fd, &path]
        fn create_directory_at(fd: Fd, path: String) -> FsResult<()>;
        [Wish::Change, fd, &path]
        fn remove_directory_at(fd: Fd, path: String) -> FsResult<()>;
        [Wish::Change, fd, ""]
        fn set_times(fd: Fd, access: NewTimestamp, change: NewTimestamp) -> FsResult<()>;
        [Wish::Change, fd, &path]
        fn set_times_at(fd: Fd, flags: PathFlags, path: String, access: NewTimestamp, change: NewTimestamp) -> FsResult<()>;
        [Wish::Change, fd, &to]
        fn symlink_at(fd: Fd, from: String, to: String) -> FsResult<()>;
        [Wish::Change, fd, &path]
        fn unlink_file_at(fd: Fd, path: String) -> FsResult<()>;
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.permit(&fd, "", Wish::Change).await?;
        self.written.take(bytes.len() as u64).map_err(full)?;
        HostDescriptor::write(&mut self.filesystem(), fd, bytes, offset).await
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        self.permit(&fd, "", Wish::Change).await?;
        // What a file is stretched by holds nothing yet, but a program that copies it writes it all.
        self.written.take(size).map_err(full)?;
        HostDescriptor::set_size(&mut self.filesystem(), fd, size).await
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        // Whatever is later written through it was permitted here.
        let changes = flags.contains(DescriptorFlags::WRITE)
            || how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        let wish = match changes {
            true => Wish::Change,
            false if how.contains(OpenFlags::DIRECTORY) => Wish::List,
            false => Wish::Read,
        };
        self.permit(&fd, &path, wish).await?;
        // A pipe or a device would keep a thread of the host waiting for as long as it likes.
        let place = Fd::new_borrow(fd.rep());
        let found = {
            let mut files = self.filesystem();
            HostDescriptor::stat_at(&mut files, place, follow, path.clone()).await
        };
        let known = [
            DescriptorType::RegularFile,
            DescriptorType::Directory,
            DescriptorType::SymbolicLink,
        ];
        if found.is_ok_and(|stat| !known.contains(&stat.type_)) {
            return Err(ErrorCode::Unsupported.into());
        }
        let folder = Fd::new_borrow(fd.rep());
        let mut files = self.filesystem();
        let opened =
            HostDescriptor::open_at(&mut files, fd, follow, path.clone(), how, flags).await;
        if let Err(error) = &opened
            && let Some(ErrorCode::NotPermitted) = error.downcast_ref()
        {
            self.deny_link(&folder, &path, wish);
        }
        opened
    }

    async fn link_at(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        path: String,
        to: Fd,
        to_path: String,
    ) -> FsResult<()> {
        self.permit(&fd, &path, Wish::Change).await?;
        self.permit(&to, &to_path, Wish::Change).await?;
        HostDescriptor::link_at(&mut self.filesystem(), fd, follow, path, to, to_path).await
    }

    async fn rename_at(&mut self, fd: Fd, path: String, to: Fd, to_path: String) -> FsResult<()> {
        self.permit(&fd, &path, Wish::Change).await?;
        self.permit(&to, &to_path, Wish::Change).await?;
        HostDescriptor::rename_at(&mut self.filesystem(), fd, path, to, to_path).await
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        HostDescriptor::read_via_stream(&mut self.filesystem(), fd, offset)
    }

    fn write_via_stream(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = HostDescriptor::write_via_stream(&mut self.filesystem(), fd, offset)?;
        self.counted(stream)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        let stream = HostDescriptor::append_via_stream(&mut self.filesystem(), fd)?;
        self.counted(stream)
    }

    fn drop(&mut self, fd: Fd) -> Result<()> {
        HostDescriptor::drop(&mut self.filesystem(), fd)
    }
}

impl HostDirectoryEntryStream for Guest {
    async fn read_directory_entry(
        &mut self,
        entries: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        HostDirectoryEntryStream::read_directory_entry(&mut self.filesystem(), entries).await
    }

    fn drop(&mut self, entries: Resource<DirectoryEntryStream>) -> Result<()> {
        HostDirectoryEntryStream::drop(&mut self.filesystem(), entries)
    }
}
