//! The journal of deployments: hashes and two indexes under one tag. Each write is one script that compares the fence and
//! writes all or nothing; a look is one command, and a long list of deployments several.

mod line;

use redis::cmd;
use tidegate_core::bounds::DEPLOYMENTS_KEPT;
use tidegate_core::journal::{Deployment, Lines, Mapped, Step};
use tidegate_store::journal::{check_deployment, check_lines, that_count};
use tidegate_store::{Answer, Journal, Result};

use crate::scripts::{self, Call};
use crate::trouble::unusable;
use crate::{Redis, reply};

/// Deployments that are read at once: each may have a large request.
const PAGE: usize = 64;

impl Redis {
    async fn kept_deployment(&self, deployment: &Deployment) -> Result<bool> {
        check_deployment(deployment)?;
        let keys = [
            format!("{}{}", self.keys.deployments(), deployment.id),
            self.keys.all_deployments(),
            format!("{}{}", self.keys.deployments_in(), deployment.scope),
        ];
        let mut call = Call::new(&scripts::JOURNAL_KEEP, keys)
            .with(&*deployment.id)
            .with(deployment.fence)
            // One less than are kept, because one more comes.
            .with(DEPLOYMENTS_KEPT - 1)
            .with(self.keys.deployments())
            .with(self.keys.deployment_steps())
            .with(self.keys.deployments_in())
            .with(u8::from(deployment.note.is_some()));
        line::tell_deployment(&mut call, deployment);
        let is_kept = reply::parsed(self.step("keep the deployment", &call).await?)?;
        if is_kept {
            self.is_on_replicas(&deployment.id).await?;
        }
        Ok(is_kept)
    }

    async fn written_lines(&self, id: &str, fence: u64, lines: Lines) -> Result<bool> {
        check_lines(fence, &lines)?;
        let lines = that_count(lines);
        let keys =
            [format!("{}{id}", self.keys.deployments()), format!("{}{id}", self.keys.deployment_steps())];
        let mut call = Call::new(&scripts::JOURNAL_WRITE, keys)
            .with(fence)
            .with(self.keys.objects())
            .with(lines.steps.len() * 2);
        for step in &lines.steps {
            call.tell(line::field(&step.kind, &step.key)?).tell(line::of_step(step)?);
        }
        for mapped in &lines.mapped {
            call.tell(line::field(&mapped.kind, &mapped.key)?).tell(line::of_mapped(mapped)?);
        }
        let is_written = reply::parsed(self.step("write the journal", &call).await?)?;
        if is_written {
            self.is_on_replicas(id).await?;
        }
        Ok(is_written)
    }

    async fn is_on_replicas(&self, id: &str) -> Result<()> {
        let what = || format!("the journal of deployment {id}");
        self.wait_for_replicas(&self.keys.all_deployments(), what).await
    }

    async fn found_deployment(&self, id: &str) -> Result<Option<Deployment>> {
        let key = format!("{}{id}", self.keys.deployments());
        let answer = self.link.send(cmd("HGETALL").arg(key)).await;
        let answer = answer.map_err(|failed| unusable(self.link.name(), failed))?;
        line::deployment(id, reply::parsed(answer)?)
    }

    async fn found_deployments(&self, scope: Option<&str>, most: usize) -> Result<Vec<Deployment>> {
        let ids = match scope {
            Some(scope) => format!("{}{scope}", self.keys.deployments_in()),
            None => self.keys.all_deployments(),
        };
        let (mut found, mut from) = (Vec::new(), "+".to_owned());
        while found.len() < most {
            let wanted = PAGE.min(most - found.len());
            let call = Call::new(&scripts::JOURNAL_LIST, [ids.clone()])
                .with(self.keys.deployments())
                .with(&from)
                .with(wanted);
            let answer = call.send(&self.link).await.map_err(|failed| unusable(self.link.name(), failed))?;
            let page = reply::list(answer)?;
            let is_last = page.len() < wanted;
            for one in page {
                let mut parts = reply::list(one)?;
                let id: String = reply::at(&mut parts, 0)?;
                let kept = line::deployment(&id, reply::at(&mut parts, 1)?)?;
                found.push(kept.ok_or_else(|| reply::odd("a deployment"))?);
                from = format!("({id}");
            }
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// The lines of a hash.
    async fn lines_of(&self, key: String) -> Result<Vec<Vec<u8>>> {
        let answer = self.link.send(cmd("HVALS").arg(key)).await;
        reply::parsed(answer.map_err(|failed| unusable(self.link.name(), failed))?)
    }

    async fn found_steps(&self, id: &str) -> Result<Vec<Step>> {
        let lines = self.lines_of(format!("{}{id}", self.keys.deployment_steps())).await?;
        let mut steps = lines.iter().map(|kept| line::step(kept)).collect::<Result<Vec<_>>>()?;
        steps.sort_unstable_by(|a, b| (a.nth, &a.kind, &a.key).cmp(&(b.nth, &b.kind, &b.key)));
        Ok(steps)
    }

    async fn found_mapped(&self, scope: &str) -> Result<Vec<Mapped>> {
        let lines = self.lines_of(format!("{}{scope}", self.keys.objects())).await?;
        let mut mapped = lines.iter().map(|kept| line::mapped(kept)).collect::<Result<Vec<_>>>()?;
        mapped.sort_unstable_by(|a, b| (&a.kind, &a.key).cmp(&(&b.kind, &b.key)));
        Ok(mapped)
    }
}

impl Journal for Redis {
    fn keep_deployment(&self, deployment: Deployment) -> Answer<'_, bool> {
        Box::pin(async move { self.kept_deployment(&deployment).await })
    }

    fn write_journal(&self, deployment: &str, fence: u64, lines: Lines) -> Answer<'_, bool> {
        let id = deployment.to_owned();
        Box::pin(async move { self.written_lines(&id, fence, lines).await })
    }

    fn deployment(&self, id: &str) -> Answer<'_, Option<Deployment>> {
        let id = id.to_owned();
        Box::pin(async move { self.found_deployment(&id).await })
    }

    fn deployments(&self, scope: Option<&str>, most: usize) -> Answer<'_, Vec<Deployment>> {
        let scope = scope.map(str::to_owned);
        Box::pin(async move { self.found_deployments(scope.as_deref(), most).await })
    }

    fn deployment_steps(&self, id: &str) -> Answer<'_, Vec<Step>> {
        let id = id.to_owned();
        Box::pin(async move { self.found_steps(&id).await })
    }

    fn mapped(&self, scope: &str) -> Answer<'_, Vec<Mapped>> {
        let scope = scope.to_owned();
        Box::pin(async move { self.found_mapped(&scope).await })
    }
}
