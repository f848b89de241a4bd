//! Rate and round-trip time of the switch.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::super::{Host, Network};

/// `cargo test -p ipam-jepsen --lib --release rate -- --ignored --nocapture`, on an idle machine.
#[test]
#[ignore = "measurement, for an idle machine"]
fn rate_and_round_trip_time() {
    let network = Network::make(1).unwrap();
    let (a, b) = (network.add_host("n1", 1).unwrap(), network.add_host("n2", 2).unwrap());
    println!("loopback: {:?}", measure(&a, &a));
    let (round_trip, gbit_s) = measure(&a, &b);
    println!("switch: {:?}; {:?}", (round_trip, gbit_s), network.counters().total);
    assert!(round_trip < Duration::from_micros(200), "{round_trip:?}");
    assert!(gbit_s > 0.3, "{gbit_s}");
}

/// Returns the median round-trip time and the rate in Gbit/s of TCP.
fn measure(a: &Host, b: &Host) -> (Duration, f64) {
    let listener = b.within(|| Ok(TcpListener::bind((b.ipv4, 0))?)).unwrap();
    let to = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = listener.accept().unwrap().0;
            stream.set_nodelay(true).unwrap();
            let mut byte = [0];
            while stream.read(&mut byte).unwrap() == 1 {
                stream.write_all(&byte).unwrap();
            }
            let mut stream = listener.accept().unwrap().0;
            let mut buffer = vec![0; 1 << 17];
            while stream.read(&mut buffer).unwrap() > 0 {}
            stream.write_all(b"x").unwrap();
        });
        let mut stream = a.within(|| Ok(TcpStream::connect(to)?)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut times = Vec::new();
        for _ in 0..20_000 {
            let begun = Instant::now();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            times.push(begun.elapsed());
        }
        drop(stream);
        times.sort_unstable();

        let mut stream = a.within(|| Ok(TcpStream::connect(to)?)).unwrap();
        let (begun, buffer) = (Instant::now(), vec![0; 1 << 17]);
        let mut writes: u32 = 0;
        while begun.elapsed() < Duration::from_secs(3) {
            stream.write_all(&buffer).unwrap();
            writes += 1;
        }
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        let bits = f64::from(writes) * f64::from(8 << 17);
        (times[times.len() / 2], bits / begun.elapsed().as_secs_f64() / 1e9)
    })
}
