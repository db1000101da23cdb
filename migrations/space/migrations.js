import journal from './meta/_journal.json';
import m0000 from './0000_space.sql';
import m0001 from './0001_jobs.sql';
import m0002 from './0002_guards.sql';
import m0003 from './0003_known_polaris.sql';
import m0004 from './0004_log_joined.sql';
import m0005 from './0005_log_members.sql';
import m0006 from './0006_origins.sql';
import m0007 from './0007_spent_budgets.sql';
import m0008 from './0008_lyrical_iron_man.sql';
import m0009 from './0009_dear_mandarin.sql';
import m0010 from './0010_complete_giant_girl.sql';
import m0011 from './0011_suspended.sql';
import m0012 from './0012_mysterious_harrier.sql';
import m0013 from './0013_told_origins.sql';
import m0014 from './0014_follows.sql';
import m0015 from './0015_cultured_harry_osborn.sql';

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
m0015
    }
  }
  