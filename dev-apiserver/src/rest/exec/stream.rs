//! The stream after the handshake.

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::channel::{CLOSE, ERROR, STDIN, STDOUT};
use super::simulation::Simulation;
use crate::websocket::{Opcode, frame, take};

/// Sends the output, echoes the input, and sends the exit code.
pub(super) async fn run(upgrade: OnUpgrade, simulation: Simulation) -> anyhow::Result<()> {
    let mut stream: TokioIo<Upgraded> = TokioIo::new(upgrade.await?);
    let channel = |channel: u8, bytes: &[u8]| frame(Opcode::Data, &[&[channel], bytes].concat());
    if !simulation.output.is_empty() {
        stream.write_all(&channel(simulation.channel, simulation.output.as_bytes())).await?;
    }
    let (mut received, mut chunk, mut open) = (Vec::new(), vec![0; 16 * 1024], simulation.echoes_input);
    let mut current = STDIN;
    while open {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(&chunk[..count]);
        while let Some(taken) = take(&mut received)? {
            match (taken.opcode, taken.payload.split_first()) {
                (Opcode::Close, _) => return Ok(()),
                (Opcode::Ping, _) => stream.write_all(&frame(Opcode::Pong, &taken.payload)).await?,
                (Opcode::Data, Some((&CLOSE, [STDIN]))) => open = false,
                (Opcode::Data, Some((&to, input))) => {
                    current = to;
                    // Ctrl-D closes the input of a terminal.
                    open &= to != STDIN || !input.contains(&4);
                    if to == STDIN && !input.is_empty() {
                        stream.write_all(&channel(STDOUT, input)).await?;
                    }
                }
                (Opcode::Continuation, Some(_)) if current == STDIN => {
                    stream.write_all(&channel(STDOUT, &taken.payload)).await?;
                }
                _ => {}
            }
        }
    }
    let status = status(simulation.exit_code);
    stream.write_all(&channel(ERROR, status.to_string().as_bytes())).await?;
    // 1000: normal closure (RFC 6455 section 7.4.1).
    stream.write_all(&frame(Opcode::Close, &1000_u16.to_be_bytes())).await?;
    stream.flush().await?;
    // The client closes the connection.
    while stream.read(&mut chunk).await? > 0 {}
    Ok(())
}

/// The `Status` on the error channel, as kubelet writes it (`remotecommand.NonZeroExitCodeReason`).
fn status(exit_code: u8) -> Value {
    if exit_code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    let cause = json!({"reason": "ExitCode", "message": exit_code.to_string()});
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]},
        "message": format!("command terminated with non-zero exit code: exit status {exit_code}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_has_the_exit_code() {
        assert_eq!(status(0)["status"], "Success");
        assert_eq!(status(126)["details"]["causes"][0]["message"], "126");
    }
}
