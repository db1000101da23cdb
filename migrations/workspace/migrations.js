import journal from './meta/_journal.json';
import m0000 from './0000_first.sql';
import m0001 from './0001_jobs.sql';
import m0002 from './0002_origins.sql';
import m0003 from './0003_sign_in_codes.sql';
import m0004 from './0004_spaces_by_maker.sql';
import m0005 from './0005_impersonated.sql';
import m0006 from './0006_fantastic_vargas.sql';
import m0007 from './0007_sessions.sql';
import m0008 from './0008_left_lockheed.sql';
import m0009 from './0009_audit.sql';
import m0010 from './0010_brief_mesmero.sql';
import m0011 from './0011_suspended.sql';
import m0012 from './0012_blue_polaris.sql';
import m0013 from './0013_tired_typhoid_mary.sql';
import m0014 from './0014_smiling_thor.sql';
import m0015 from './0015_meters.sql';
import m0016 from './0016_robust_cardiac.sql';
import m0017 from './0017_redundant_night_nurse.sql';
import m0018 from './0018_keen_talon.sql';
import m0019 from './0019_brief_ink.sql';
import m0020 from './0020_heavy_marrow.sql';
import m0021 from './0021_demonic_grey_gargoyle.sql';
import m0022 from './0022_secret_mulholland_black.sql';
import m0023 from './0023_socket_objects.sql';
import m0024 from './0024_fearless_maelstrom.sql';

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
m0024
    }
  }
  