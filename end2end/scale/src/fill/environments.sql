-- What is live on each guest of an environment, and the archives that it keeps.
create temp table last_live on commit drop as
select d.project_id, d.environment, pg_temp.shape('live')
        || jsonb_build_object('deployment', d.id, 'commit', pg_temp.commit_of(d.n), 'since_ms', pg_temp.ms(d.ordered_at)) as live,
    (select jsonb_agg(pg_temp.shape('archive') || jsonb_build_object('id', old.id, 'release', old.id, 'commit', pg_temp.commit_of(old.n), 'at_ms', pg_temp.ms(old.ordered_at)))
        from (select * from drawn a where a.project_id = d.project_id and a.environment = d.environment and a.state = 'live'
              order by a.n desc limit 5) old) as archives
from (select distinct on (project_id, environment) * from drawn where state = 'live' order by project_id, environment, n desc) d;

update environment_guests e set live = l.live, archives = l.archives
from last_live l where l.project_id = e.project_id and l.environment = e.environment;
