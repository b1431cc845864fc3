//! Files that are not what they seem.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::support::{Client, Server};

/// Where a photo was taken, as text that must not come out again.
const PLACE: &[u8] = b"48.8584N 2.2945E";

/// Uploads a file into the open session of the token's user.
pub(crate) async fn upload(
    server: &Server,
    token: &str,
    name: &str,
    bytes: Vec<u8>,
) -> Result<(u16, Value)> {
    let part = reqwest::multipart::Part::bytes(bytes).file_name(name.to_owned());
    let form = reqwest::multipart::Form::new().part("file", part);
    let request = reqwest::Client::new().post(server.url("/api/v1/uploads")).multipart(form);
    let response = request.bearer_auth(token).send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

/// A picture of so many pixels a side.
fn picture(side: u32, format: image::ImageFormat) -> Result<Vec<u8>> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(side, side).write_to(&mut bytes, format)?;
    Ok(bytes.into_inner())
}

/// A small PNG.
pub(crate) fn png(side: u32) -> Result<Vec<u8>> {
    picture(side, image::ImageFormat::Png)
}

/// A JPEG that must be turned to stand upright, and says where it was taken.
fn jpeg_with_place() -> Result<Vec<u8>> {
    let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x02".to_vec();
    exif.extend(b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0");
    exif.extend(b"\x88\x25\0\x04\0\0\0\x01\0\0\0\x26\0\0\0\0");
    exif.extend(PLACE);
    let jpeg = picture(8, image::ImageFormat::Jpeg)?;
    let length = u16::try_from(exif.len() + 2)?.to_be_bytes();
    Ok([&jpeg[..2], b"\xff\xe1", &length, &exif, &jpeg[2..]].concat())
}

/// One chunk of a PNG, with its checksum (ISO 3309).
fn chunk(kind: &[u8; 4], data: &[u8]) -> Result<Vec<u8>> {
    let body = [&kind[..], data].concat();
    let crc = !body.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    });
    Ok([&u32::try_from(data.len())?.to_be_bytes()[..], &body, &crc.to_be_bytes()].concat())
}

/// 30 KB that would decode to ten gigabytes.
fn huge_png() -> Result<Vec<u8>> {
    let side = 60_000_u32.to_be_bytes();
    let head = [&side[..], &side, &[8, 2, 0, 0, 0]].concat();
    let parts = [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &head)?,
        chunk(b"IDAT", &[0; 30_000])?,
        chunk(b"IEND", &[])?,
    ];
    Ok(parts.concat())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The most memory that a process ever held.
fn peak_kib(server: &Server) -> Result<i64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("VmHWM")?;
    Ok(line.split_whitespace().nth(1).context("a number")?.parse()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b97_neither_a_script_nor_a_name_gets_to_the_agents_browser() -> Result<()> {
    let server = Server::start().await?;
    let (_user, _) = Client::visitor(&server, "user").await?;
    let token = server.user("user");
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>".to_vec();
    for name in ["a.svg", "a.png"] {
        let (status, error) = upload(&server, &token, name, svg.clone()).await?;
        ensure!(status == 415, "{name}: {error}");
        ensure!(error["error"]["code"] == "unsupported_media_type", "CC-19: {error}");
    }
    let harmful = "\"><img src=x onerror=alert(1)>.png";
    let (status, stored) = upload(&server, &token, harmful, png(8)?).await?;
    ensure!(status == 201 && stored["mimeType"] == "image/png", "{stored}");
    let url = stored["url"].as_str().context("a link")?;
    ensure!(!url.contains("onerror") && !url.contains('<'), "a name of our own: {url}");
    let answer = reqwest::get(server.url(url)).await?;
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    ensure!(header("content-type") == Some("image/png"));
    ensure!(header("x-content-type-options") == Some("nosniff"));
    let disposition = header("content-disposition").context("a disposition")?;
    ensure!(disposition.starts_with("attachment") && !disposition.contains("onerror"));
    let policy = header("content-security-policy").context("a policy")?;
    ensure!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b102_where_a_photo_was_taken_is_dropped_and_huge_pixels_are_refused() -> Result<()> {
    let server = Server::start().await?;
    let (_user, _) = Client::visitor(&server, "user").await?;
    let token = server.user("user");
    let photo = jpeg_with_place()?;
    ensure!(contains(&photo, PLACE));
    let (status, stored) = upload(&server, &token, "photo.jpg", photo).await?;
    ensure!(status == 201, "{stored}");
    let url = stored["url"].as_str().context("a link")?;
    let kept = reqwest::get(server.url(url)).await?.bytes().await?;
    ensure!(!contains(&kept, PLACE) && !contains(&kept, b"\x88\x25\0\x04"), "the place is gone");
    ensure!(contains(&kept, b"\x01\x12\0\x03\0\0\0\x01\0\x06"), "the way up is kept");
    ensure!(image::load_from_memory(&kept)?.width() == 8, "still the picture");

    let before = peak_kib(&server)?;
    let (status, error) = upload(&server, &token, "huge.png", huge_png()?).await?;
    ensure!(status == 413, "{error}");
    ensure!(error["error"]["code"] == "payload_too_large", "{error}");
    ensure!(peak_kib(&server)? - before < 32 * 1_024, "it was never decoded");
    Ok(())
}
