use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use super::*;

fn take_at(socket: impl Into<OwnedFd>, directory: &Path) -> (HandedSockets, Option<OwnedFd>) {
    let all = vec![
        ("http.sock".to_owned(), socket.into()),
        (
            "other".to_owned(),
            std::fs::File::open("/dev/null").unwrap().into(),
        ),
    ];
    let (handed, others) = HandedSockets::of(all);
    assert_eq!(others.len(), 1, "what is no door's comes back");
    let way = TrustedPath::make(directory).unwrap();
    let access = Access {
        group: None,
        mode: 0o620,
    };
    let taken = handed.take((&way, "http.sock"), SocketType::STREAM, &access);
    (handed, taken)
}

#[test]
fn a_socket_that_listens_at_the_place_of_its_door_is_taken_with_the_mode_of_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("http.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (handed, taken) = take_at(listener, directory.path());
    assert!(handed.has_taken("http.sock") && !handed.has_taken("gate.sock"));
    let listener = UnixListener::from(taken.unwrap());
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o620);
    // It does not block any more. One connection is the look itself.
    let _caller = UnixStream::connect(&path).unwrap();
    let accepted = || {
        listener
            .accept()
            .map(|_accepted| ())
            .map_err(|error| error.kind())
    };
    assert_eq!([accepted(), accepted()], [Ok(()), Ok(())]);
    assert_eq!(accepted(), Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn what_is_no_socket_of_the_door_is_refused_and_closed() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let refused = |socket: OwnedFd| {
        let (handed, taken) = take_at(socket, directory.path());
        assert!(taken.is_none() && !handed.has_taken("http.sock"));
    };
    // Elsewhere, of another type, not listening, no socket at all, and one whose file is gone.
    refused(UnixListener::bind(at("elsewhere")).unwrap().into());
    refused(UnixDatagram::bind(at("http.sock")).unwrap().into());
    std::fs::remove_file(at("http.sock")).unwrap();
    let listener = UnixListener::bind(at("http.sock")).unwrap();
    refused(UnixStream::connect(at("http.sock")).unwrap().into());
    refused(std::fs::File::open("/dev/null").unwrap().into());
    std::fs::remove_file(at("http.sock")).unwrap();
    refused(listener.try_clone().unwrap().into());
    let _another = UnixDatagram::bind(at("http.sock")).unwrap();
    refused(listener.into());
}
