//! The journal of deployments: hashes, lists of events and two indexes under one tag. Each write is
//! one script that compares the fence and writes all or nothing; a read is one command, and a long
//! list of deployments several.

mod line;

use std::sync::atomic::{AtomicU64, Ordering};

use redis::cmd;
use tidegate_core::bounds::{DEPLOYMENT_EVENTS_KEPT, DEPLOYMENTS_KEPT};
use tidegate_core::journal::{Deployment, DeploymentStep, JournalLines, ObjectMapping, StepEvents};
use tidegate_store::journal::{check_deployment, check_lines, dedupe_mapped};
use tidegate_store::{Journal, Result, StoreFuture};

use crate::errors::unusable;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply};

/// The deployments that are read at once: each may have a large request.
const PAGE: usize = 64;
/// The number of writes of this process, which keeps their tokens apart.
static WRITES: AtomicU64 = AtomicU64::new(0);

impl RedisStore {
    async fn write_deployment(&self, deployment: &Deployment) -> Result<bool> {
        check_deployment(deployment)?;
        let keys = [
            format!("{}{}", self.keys.deployments(), deployment.id),
            self.keys.all_deployments(),
            format!("{}{}", self.keys.deployments_in(), deployment.scope),
        ];
        let mut call = ScriptCall::new(&scripts::JOURNAL_KEEP, keys)
            .with_arg(&*deployment.id)
            .with_arg(deployment.fence)
            // One less than the maximum, because one more is added.
            .with_arg(DEPLOYMENTS_KEPT - 1)
            .with_arg(self.keys.deployments())
            .with_arg(self.keys.deployment_steps())
            .with_arg(self.keys.deployment_events())
            .with_arg(self.keys.deployments_in())
            .with_arg(u8::from(deployment.note.is_some()));
        line::add_deployment_args(&mut call, deployment);
        let is_kept = reply::parsed(self.run_script("keep the deployment", &call).await?)?;
        if is_kept {
            self.wait_until_replicated(&deployment.id).await?;
        }
        Ok(is_kept)
    }

    async fn write_lines(&self, id: &str, fence: u64, lines: JournalLines) -> Result<bool> {
        check_lines(fence, &lines)?;
        let call = self.lines_call(id, fence, lines)?;
        let is_written = reply::parsed(self.run_script("write the journal", &call).await?)?;
        if is_written {
            self.wait_until_replicated(id).await?;
        }
        Ok(is_written)
    }

    /// The call that writes lines. It has a token: a cluster's driver may send it twice.
    fn lines_call(&self, id: &str, fence: u64, lines: JournalLines) -> Result<ScriptCall<'static>> {
        let prefixes = [self.keys.deployments(), self.keys.deployment_steps(), self.keys.deployment_events()];
        let nth = WRITES.fetch_add(1, Ordering::Relaxed);
        let mut call =
            ScriptCall::new(&scripts::JOURNAL_WRITE, prefixes.map(|prefix| format!("{prefix}{id}")))
                .with_arg(fence)
                .with_arg(self.keys.objects())
                .with_arg(format!("{fence}.{}.{nth}", std::process::id()))
                .with_arg(DEPLOYMENT_EVENTS_KEPT)
                .with_arg(lines.steps.len());
        for step in &lines.steps {
            call.arg(line::field(&step.kind, &step.key)?).arg(line::encode_step(step)?);
        }
        for mapped in &dedupe_mapped(lines.mapped) {
            call.arg(line::field(&mapped.kind, &mapped.key)?).arg(line::encode_mapped(mapped)?);
        }
        Ok(call)
    }

    async fn wait_until_replicated(&self, id: &str) -> Result<()> {
        let what = || format!("the journal of deployment {id}");
        self.wait_for_replicas(&self.keys.all_deployments(), what).await
    }

    async fn read_deployment(&self, id: &str) -> Result<Option<Deployment>> {
        let key = format!("{}{id}", self.keys.deployments());
        let answer = self.connection.send(cmd("HGETALL").arg(key)).await;
        let answer = answer.map_err(|failed| unusable(self.connection.name(), failed))?;
        line::decode_deployment(id, reply::parsed(answer)?)
    }

    async fn read_deployments(&self, scope: Option<&str>, most: usize) -> Result<Vec<Deployment>> {
        let ids = match scope {
            Some(scope) => format!("{}{scope}", self.keys.deployments_in()),
            None => self.keys.all_deployments(),
        };
        let (mut found, mut from) = (Vec::new(), "+".to_owned());
        while found.len() < most {
            let wanted = PAGE.min(most - found.len());
            let call = ScriptCall::new(&scripts::JOURNAL_LIST, [ids.clone()])
                .with_arg(self.keys.deployments())
                .with_arg(&from)
                .with_arg(wanted);
            let answer = call
                .send(&self.connection)
                .await
                .map_err(|failed| unusable(self.connection.name(), failed))?;
            let page = reply::list(answer)?;
            let is_last = page.len() < wanted;
            for one in page {
                let mut parts = reply::list(one)?;
                let id: String = reply::part_at(&mut parts, 0)?;
                let kept = line::decode_deployment(&id, reply::part_at(&mut parts, 1)?)?;
                found.push(kept.ok_or_else(|| reply::unexpected_reply("a deployment"))?);
                from = format!("({id}");
            }
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// Reads the lines of a hash.
    async fn lines_of(&self, key: String) -> Result<Vec<Vec<u8>>> {
        let answer = self.connection.send(cmd("HVALS").arg(key)).await;
        reply::parsed(answer.map_err(|failed| unusable(self.connection.name(), failed))?)
    }

    async fn read_steps(&self, id: &str) -> Result<Vec<DeploymentStep>> {
        let lines = self.lines_of(format!("{}{id}", self.keys.deployment_steps())).await?;
        let mut steps = lines.iter().map(|kept| line::decode_step(kept)).collect::<Result<Vec<_>>>()?;
        steps.sort_unstable_by(|a, b| (a.nth, &a.kind, &a.key).cmp(&(b.nth, &b.kind, &b.key)));
        Ok(steps)
    }

    async fn read_events(&self, id: &str) -> Result<StepEvents> {
        let keys = [self.keys.deployments(), self.keys.deployment_events()];
        let call = ScriptCall::new(&scripts::JOURNAL_EVENTS, keys.map(|prefix| format!("{prefix}{id}")));
        let answer =
            call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let mut parts = reply::list(answer)?;
        let total: u64 = reply::part_at(&mut parts, 0)?;
        let lines: Vec<Vec<u8>> = reply::part_at(&mut parts, 1)?;
        let events = lines.iter().map(|kept| line::decode_step(kept)).collect::<Result<Vec<_>>>()?;
        Ok(StepEvents { dropped: total.saturating_sub(events.len() as u64), events })
    }

    async fn read_mapped(&self, scope: &str) -> Result<Vec<ObjectMapping>> {
        let lines = self.lines_of(format!("{}{scope}", self.keys.objects())).await?;
        let mut mapped = lines.iter().map(|kept| line::decode_mapped(kept)).collect::<Result<Vec<_>>>()?;
        mapped.sort_unstable_by(|a, b| (&a.kind, &a.key).cmp(&(&b.kind, &b.key)));
        Ok(mapped)
    }
}

impl Journal for RedisStore {
    fn save_deployment(&self, deployment: Deployment) -> StoreFuture<'_, bool> {
        Box::pin(async move { self.write_deployment(&deployment).await })
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: JournalLines) -> StoreFuture<'_, bool> {
        let id = deployment.to_owned();
        Box::pin(async move { self.write_lines(&id, fence, lines).await })
    }

    fn deployment(&self, id: &str) -> StoreFuture<'_, Option<Deployment>> {
        let id = id.to_owned();
        Box::pin(async move { self.read_deployment(&id).await })
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> StoreFuture<'_, Vec<Deployment>> {
        let scope = scope.map(str::to_owned);
        Box::pin(async move { self.read_deployments(scope.as_deref(), most).await })
    }

    fn deployment_steps(&self, id: &str) -> StoreFuture<'_, Vec<DeploymentStep>> {
        let id = id.to_owned();
        Box::pin(async move { self.read_steps(&id).await })
    }

    fn deployment_events(&self, id: &str) -> StoreFuture<'_, StepEvents> {
        let id = id.to_owned();
        Box::pin(async move { self.read_events(&id).await })
    }

    fn mapped_objects(&self, scope: &str) -> StoreFuture<'_, Vec<ObjectMapping>> {
        let scope = scope.to_owned();
        Box::pin(async move { self.read_mapped(&scope).await })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_core::Time;
    use tidegate_core::journal::{DeploymentStage, StepState};

    use super::*;

    /// OPS-17: lines that are sent again, as a driver does after losing a connection, are one event
    /// each.
    #[tokio::test]
    async fn ops_17_lines_that_are_sent_twice_are_written_once() {
        let server = tidegate_fixture::redis::RedisServer::start();
        let store = RedisStore::open(&server.url()).await.unwrap();
        let deployment = Deployment {
            id: "a".into(),
            scope: "guild:1".into(),
            fence: 1,
            round: 1,
            stage: DeploymentStage::Running,
            request: Arc::from(&b"{}"[..]),
            note: None,
            started_at: Time::ZERO,
            updated_at: Time::ZERO,
        };
        assert!(store.save_deployment(deployment).await.unwrap());
        let step = DeploymentStep {
            kind: "role".into(),
            key: "desk".into(),
            nth: 0,
            action: "create".into(),
            fingerprint: "f".into(),
            state: StepState::Planned,
            operation: None,
            foreign_id: None,
            note: None,
            at: Time::ZERO,
        };
        for written in 1..4 {
            let lines = JournalLines { steps: vec![step.clone()], mapped: Vec::new() };
            let call = store.lines_call("a", 1, lines).unwrap();
            for _ in 0..3 {
                let answer = store.run_script("write the journal", &call).await.unwrap();
                assert!(reply::parsed::<bool>(answer).unwrap());
            }
            let events = vec![step.clone(); written];
            assert_eq!(store.deployment_events("a").await.unwrap(), StepEvents { dropped: 0, events });
        }
    }
}
