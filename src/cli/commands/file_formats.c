/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/file_formats.h"

#include "base/error.h"
#include "base/json/json_schema.h"
#include "cli/commands/cmd_list.h"
#include "cli/commands/help_json.h"
#include "cli/verify_report.h"
#include "model/framework.h"
#include "model/model.h"
#include "papers/checklist.h"
#include "papers/paper.h"
#include "program/explicit/explicit_fields.h"
#include "report/data/plan_json.h"
#include "report/data/result_json.h"
#include "report/data/sweep_values.h"
#include "report/data/timeline.h"
#include "report/draw/memory_timeline.h"
#include "report/text/cluster/describe_doctor.h"
#include "report/text/cluster/describe_import.h"
#include "report/text/cluster/log_check_values.h"
#include "report/text/describe_diff.h"
#include "report/text/describe_memory.h"
#include "report/text/describe_run.h"
#include "report/text/path_json.h"
#include "report/text/reproduction_values.h"
#include "report/validation/validation_json.h"
#include "scenario/profile.h"
#include "scenario/scenario_fields.h"
#include "sim/cost/device_fields.h"
#include "sim/network/topology_schema.h"

#include <string.h>

const LhFileFormat lh_file_formats[] = {
    { "longhaul.scenario/1",
      "read: a case, as options describe it (compare, sim, verify, run, validate, show)",
      "What to simulate", NULL, lh_scenario_fields },
    { "longhaul.topology/2",
      "read and written: a cluster (--cluster; calibrate --topology, topology -o)", "A cluster",
      lh_topology_fields, NULL },
    { "longhaul.device/2", "read: a GPU (named by a topology); also longhaul.device/1", "A GPU",
      lh_device_fields, NULL },
    { "longhaul.model/1", "read: the shape of a transformer (--model)", "A transformer's shape",
      lh_model_fields, NULL },
    { "config.json", "read: the same, as Hugging Face publishes it (--model)", NULL, NULL, NULL },
    { "lengths of documents",
      "read: numbers with spaces or line breaks between them; ; separates packs, # begins a "
      "comment "
      "(--document-lengths)",
      NULL, NULL, NULL },
    { "longhaul.framework/1", "read: how a training system runs a step (frameworks/)",
      "How a training system runs a step", NULL, lh_framework_fields },
    { "longhaul.checklist/1", "read: claims of papers, by published tables (scenarios/checklists/)",
      "Claims of papers, line by line", lh_checklist_fields, NULL },
    { "longhaul.paper/1", "read: description of a published table (scenarios/papers/)",
      "Description of a published table", lh_paper_fields, NULL },
    { "longhaul.profile/2",
      "read and written: measured constants (--profile; calibrate -o); also longhaul.profile/1",
      "Measured constants", NULL, lh_profile_fields },
    { "longhaul.schedule/1",
      "read and written: an explicit program (--schedule-file; show --format json)",
      "The programs of all ranks", lh_program_fields, NULL },
    { LH_RESULT_SCHEMA, "written: simulated times (compare and sim --format json)",
      "Simulated times: what sim and compare write with --format json. The members of \"case\", "
      "and those of a result up to \"reason\", are the columns of --format csv, in this order. "
      "Integers and times are exact and may exceed 2^53: use a reader that keeps all digits.",
      lh_result_fields, NULL },
    { LH_SWEEP_SCHEMA, "written: simulated times at many points (sweep --format json)",
      "What sweep writes with --format json. The members of a row are the columns of --format csv, "
      "in this order; the sweep's fields that are not among them follow the point.",
      lh_sweep_fields, NULL },
    { "longhaul.plan/1", "written: the fastest configurations for training (plan --format json)",
      "What plan writes with --format json. The members of a configuration are the columns of "
      "--format csv, in this order.",
      lh_plan_fields, NULL },
    { LH_MEMORY_SCHEMA, "written: memory of a case (memory --format json)",
      "How much memory a case needs, and what changes of it would save: what memory writes with "
      "--format json.",
      lh_memory_fields, NULL },
    { "longhaul.path/1", "written: the critical path of a run (sim --critical-path --format json)",
      "The critical path of a run, op by op: what sim --critical-path writes with --format json. "
      "Times are exact decimal seconds of whole picoseconds.",
      lh_path_fields, NULL },
    { "longhaul.diff/1", "written: comparison of two results (diff --format json)",
      "Comparison of two results: what diff writes with --format json.", lh_diff_fields, NULL },
    { "longhaul.collective/1", "written: predicted output of nccl-tests (collective --format json)",
      "Predicted output of nccl-tests: what collective writes with --format json.",
      lh_collective_fields, NULL },
    { "longhaul.verdict/1", "written: proofs (verify --format json)",
      "Which programs are proven: what verify writes with --format json.", lh_verdict_fields,
      NULL },
    { "longhaul.run/1", "written: an executed schedule (run --format json)",
      "An executed schedule: what run writes with --format json.", lh_run_fields, NULL },
    { "longhaul.validation/2", "written: predicted and measured times (validate --format json)",
      "Predicted and measured times: longhaul validate --format json", lh_validation_fields, NULL },
    { "longhaul.import/1", "written: constants fitted to traces (import --format json)",
      "Constants fitted to traces: what import writes with --format json.", lh_import_fields,
      NULL },
    { "longhaul.reproduction/1",
      "written: predicted and published values (reproduce --format json)",
      "Predicted and published values: what reproduce writes with --format json.",
      lh_reproduction_fields, NULL },
    { "longhaul.list/1", "written: a listing of names (list --format json)",
      "A listing of names: what list writes with --format json.", lh_list_fields, NULL },
    { "longhaul.doctor/1",
      "written: backends and components of this machine (doctor --format json)",
      "Backends and components of this machine: longhaul doctor --format json", lh_doctor_fields,
      NULL },
    { "longhaul.timeline/1", "written: timeline of a run (--timeline FILE.json)",
      "Timeline of a run: every op with its times.", lh_timeline_fields, NULL },
    { "longhaul.memory-timeline/1",
      "written: memory of ranks over time (--memory-timeline FILE.json)",
      "Memory of ranks over time.", lh_memory_timeline_fields, NULL },
    { "longhaul.trace/1",
      "written: every op, for trace viewers, in Chrome's format (--trace FILE.json)", NULL, NULL,
      NULL },
    { "longhaul.help/1", "written: every option of every command (help --format json)",
      "Every option of every command: what help writes with --format json.", lh_help_fields, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

/* "result" of "longhaul.result/3". Caller frees. */
static char *
short_name(const LhFileFormat *format)
{
    const char *from = strchr(format->name, '.') + 1;

    return g_strndup(from, strcspn(from, "/"));
}

/* "scenario, topology, ..."; caller frees. */
static char *
names_with_schema(void)
{
    GString *all = g_string_new(NULL);

    for (const LhFileFormat *format = lh_file_formats; format->name != NULL; format++) {
        if (format->title != NULL) {
            g_autofree char *name = short_name(format);

            g_string_append_printf(all, "%s%s", all->len > 0 ? ", " : "", name);
        }
    }
    return g_string_free(all, FALSE);
}

static const LhFileFormat *
find_format(const char *name)
{
    for (const LhFileFormat *format = lh_file_formats; format->name != NULL; format++) {
        if (format->title != NULL) {
            g_autofree char *own = short_name(format);

            if (strcmp(name, own) == 0 || strcmp(name, format->name) == 0)
                return format;
        }
    }
    return NULL;
}

char *
lh_file_format_schema(const char *name, GError **error)
{
    const LhFileFormat *format = find_format(name);
    g_autofree char *allowed = NULL;

    if (format != NULL)
        return lh_json_schema(format->name, format->title,
                              format->made != NULL ? format->made() : format->fields);
    allowed = names_with_schema();
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "help schema: \"%.60s\" is not allowed; allowed: %s", name, allowed);
    return NULL;
}
