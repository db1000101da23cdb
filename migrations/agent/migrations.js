import journal from './meta/_journal.json';
import m0000 from './0000_first.sql';
import m0001 from './0001_search.sql';
import m0002 from './0002_summaries.sql';
import m0003 from './0003_blocks.sql';
import m0004 from './0004_head_blocks.sql';
import m0005 from './0005_block_spaces.sql';
import m0006 from './0006_import.sql';
import m0007 from './0007_thinking_time.sql';
import m0008 from './0008_shares.sql';
import m0009 from './0009_message_events.sql';
import m0010 from './0010_overheard.sql';
import m0011 from './0011_active_runs.sql';
import m0012 from './0012_no_deleted_blocks.sql';
import m0013 from './0013_lived_messages.sql';
import m0014 from './0014_archived_blocks.sql';
import m0015 from './0015_waits_of_cycles.sql';
import m0016 from './0016_ended_runs.sql';
import m0017 from './0017_put_away_before.sql';
import m0018 from './0018_journal_names.sql';
import m0019 from './0019_origins.sql';
import m0020 from './0020_out_of_budget.sql';
import m0021 from './0021_rare_peter_parker.sql';
import m0022 from './0022_wealthy_havok.sql';
import m0023 from './0023_parallel_stature.sql';
import m0024 from './0024_public_marten_broadcloak.sql';
import m0025 from './0025_strong_unicorn.sql';
import m0026 from './0026_releases.sql';
import m0027 from './0027_supreme_vindicator.sql';
import m0028 from './0028_suspended.sql';
import m0029 from './0029_whole_sebastian_shaw.sql';
import m0030 from './0030_workable_newton_destine.sql';
import m0031 from './0031_words_and_accounts.sql';
import m0032 from './0032_shared_since.sql';
import m0033 from './0033_rendered_by.sql';
import m0034 from './0034_block_sources.sql';
import m0035 from './0035_tranquil_vampiro.sql';

  export default {
    journal,
    migrations: {
      m0000,
m0001,
m0002,
m0003,
m0004,
m0005,
m0006,
m0007,
m0008,
m0009,
m0010,
m0011,
m0012,
m0013,
m0014,
m0015,
m0016,
m0017,
m0018,
m0019,
m0020,
m0021,
m0022,
m0023,
m0024,
m0025,
m0026,
m0027,
m0028,
m0029,
m0030,
m0031,
m0032,
m0033,
m0034,
m0035
    }
  }
  