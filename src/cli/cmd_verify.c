/*
 * longhaul verify: proves schedules for many numbers of ranks.
 */
#include "base/error.h"
#include "cli/command.h"
#include "plan/setting.h"
#include "plan/setup.h"
#include "sched/verify.h"

#include <stddef.h>

#define RANKS_DEFAULT "1-16,24,25,32,33,64"

static const LhField options[] = {
    LH_CLI_FORMAT,
    LH_CLI_OUTPUT,
    { .name = "ranks",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhCli, ranks),
      .description =
          "Numbers of ranks, such as 1-16,24; default: the scenario's, or " RANKS_DEFAULT "." },
    { .name = NULL },
};

/* What was found of one schedule and pass, over all numbers of ranks. */
typedef struct {
    const char *name;
    LhPass pass;
    GArray *proven;      /* of uint64_t: numbers of ranks */
    GArray *unproven;    /* likewise */
    GArray *refused;     /* likewise */
    char *refusal;       /* the first reason */
    GPtrArray *findings; /* of char * */
    uint64_t findings_total;
    uint64_t ops, messages, orders, pairs, bytes, flops;
} Line;

typedef struct {
    GPtrArray *lines; /* of Line * */
    const LhScenario *scenario;
    const LhModel *model;
} Report;

static Line *
new_line(Report *report, const char *name, LhPass pass)
{
    Line *line = g_new0(Line, 1);

    line->name = name;
    line->pass = pass;
    line->proven = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    line->unproven = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    line->refused = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    line->findings = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(report->lines, line);
    return line;
}

static void
line_free(gpointer data)
{
    Line *line = data;

    g_array_unref(line->proven);
    g_array_unref(line->unproven);
    g_array_unref(line->refused);
    g_ptr_array_unref(line->findings);
    g_free(line->refusal);
    g_free(line);
}

static void
check(Line *line, const LhProgram *program)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const uint64_t ranks = program->params.ranks;

    line->ops += verdict->ops;
    line->messages += verdict->messages;
    line->orders += verdict->orders_checked;
    line->pairs += verdict->pairs_checked;
    line->findings_total += verdict->findings_total;
    for (uint32_t rank = 0; rank < verdict->ranks && verdict->bytes_sent != NULL; rank++)
        line->bytes += verdict->bytes_sent[rank];
    for (uint32_t rank = 0; rank < verdict->ranks && verdict->flops != NULL; rank++)
        line->flops += verdict->flops[rank];
    for (guint i = 0; i < verdict->findings->len; i++) {
        const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, i);

        g_ptr_array_add(line->findings, g_strdup_printf("%" G_GUINT64_FORMAT " ranks: %s", ranks,
                                                        finding->message));
    }
    g_array_append_val(*(verdict->findings->len == 0 ? &line->proven : &line->unproven), ranks);
}

static bool
check_schedule(const Report *report, Line *line, const LhSchedule *schedule, const GArray *ranks,
               GError **error)
{
    for (guint i = 0; i < ranks->len; i++) {
        const uint64_t count = g_array_index(ranks, uint64_t, i);
        g_autoptr(GError) refusal = NULL;
        g_autoptr(LhProgram) program = NULL;
        LhProgramParams params;

        if (!lh_setup_params(report->scenario, report->model, (uint32_t)count, &params, error))
            return false;
        params.pass = line->pass;
        program = lh_program_new(schedule, &params, &refusal);
        if (program != NULL) {
            check(line, program);
            continue;
        }
        g_array_append_val(line->refused, count);
        if (line->refusal == NULL)
            line->refusal = g_strdup(refusal->message);
    }
    return true;
}

/* --- output -------------------------------------------------------------------------------------
 */

/* "1-16,24": the numbers rise. Caller frees. */
static char *
format_ranges(const GArray *numbers)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < numbers->len; i++) {
        const uint64_t first = g_array_index(numbers, uint64_t, i);
        uint64_t last = first;

        while (i + 1 < numbers->len && g_array_index(numbers, uint64_t, i + 1) == last + 1) {
            last++;
            i++;
        }
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, text->len > 0 ? "," : "", first);
        if (last > first)
            g_string_append_printf(text, "-%" G_GUINT64_FORMAT, last);
    }
    return g_string_free(text, FALSE);
}

static const char *
verdict_of(const Line *line)
{
    if (line->unproven->len > 0)
        return "NOT PROVEN";
    return line->proven->len > 0 ? "proven" : "refused";
}

static void
add_count(LhTable *table, uint64_t count)
{
    g_autofree char *text = lh_format_count(count);
    g_autofree char *exact = g_strdup_printf("%" G_GUINT64_FORMAT, count);

    lh_table_cell(table, text, exact);
}

static void
add_row(LhTable *table, const Line *line)
{
    g_autofree char *proven = format_ranges(line->proven);
    g_autofree char *unproven = format_ranges(line->unproven);
    g_autofree char *refused = format_ranges(line->refused);

    lh_table_row(table);
    lh_table_cell(table, line->name, NULL);
    lh_table_cell(table, lh_pass_names[line->pass - 1], NULL);
    lh_table_cell(table, verdict_of(line), NULL);
    lh_table_cell(table, line->unproven->len > 0 ? unproven : proven, NULL);
    lh_table_cell(table, refused[0] != '\0' ? refused : "-", refused);
    add_count(table, line->ops);
    add_count(table, line->messages);
    add_count(table, line->orders);
    add_count(table, line->pairs);
    add_count(table, line->bytes);
    add_count(table, line->flops);
}

static LhTable *
make_table(const Report *report)
{
    static const struct {
        const char *key, *title;
        bool number;
    } columns[] = {
        { "schedule", "schedule", false }, { "pass", "pass", false },
        { "verdict", "verdict", false },   { "ranks", "for ranks", false },
        { "refused", "refused", false },   { "ops", "ops", true },
        { "messages", "messages", true },  { "orders", "orders", true },
        { "pairs", "pairs", true },        { "bytes", "bytes sent", true },
        { "flops", "flops", true },
    };
    LhTable *table = lh_table_new();

    for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(table, columns[i].key, columns[i].title, NULL, columns[i].number);
    for (guint i = 0; i < report->lines->len; i++)
        add_row(table, g_ptr_array_index(report->lines, i));
    return table;
}

static void
print_remarks(const Report *report, GString *out)
{
    for (guint i = 0; i < report->lines->len; i++) {
        const Line *line = g_ptr_array_index(report->lines, i);

        for (guint j = 0; j < line->findings->len; j++)
            g_string_append_printf(out, "%s%s, %s, %s\n", i + j == 0 ? "" : "\n", line->name,
                                   lh_pass_names[line->pass - 1],
                                   (const char *)g_ptr_array_index(line->findings, j));
        if (line->proven->len + line->unproven->len == 0)
            g_string_append_printf(out, "\n%s, %s: %s\n", line->name, lh_pass_names[line->pass - 1],
                                   line->refusal);
    }
}

static bool
all_proven(const Report *report)
{
    bool any = false;

    for (guint i = 0; i < report->lines->len; i++) {
        const Line *line = g_ptr_array_index(report->lines, i);

        if (line->unproven->len > 0)
            return false;
        any = any || line->proven->len > 0;
    }
    return any;
}

static void
print_json(const LhCli *cli, const Report *report, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autoptr(LhTable) table = make_table(report);
    const LhStamp stamp = lh_cli_stamp(cli);

    lh_stamp_json(w, "longhaul.verdict/1", &stamp, NULL);
    lh_jsonw_bool(w, "proven", all_proven(report));
    lh_table_json(table, w, "results");
    lh_jsonw_array_begin(w, "findings");
    for (guint i = 0; i < report->lines->len; i++) {
        const Line *line = g_ptr_array_index(report->lines, i);

        for (guint j = 0; j < line->findings->len; j++) {
            lh_jsonw_object_begin(w, NULL);
            lh_jsonw_string(w, "schedule", line->name);
            lh_jsonw_string(w, "pass", lh_pass_names[line->pass - 1]);
            lh_jsonw_string(w, "message", g_ptr_array_index(line->findings, j));
            lh_jsonw_object_end(w);
        }
    }
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

static void
print(const LhCli *cli, const Report *report, GString *out)
{
    g_autoptr(LhTable) table = make_table(report);

    if (lh_cli_format(cli) == LH_FORMAT_JSON) {
        print_json(cli, report, out);
        return;
    }
    lh_table_print(table, lh_cli_format(cli), out);
    if (lh_cli_format(cli) == LH_FORMAT_CSV)
        return;
    print_remarks(report, out);
    g_string_append(out, all_proven(report) ? "\nProven.\n" : "\nNot proven.\n");
}

/* --- the command --------------------------------------------------------------------------------
 */

static GArray *
choose_ranks(const LhCli *cli, GError **error)
{
    if (cli->ranks != NULL)
        return lh_setting_parse_ranges("--ranks", cli->ranks, error);
    if (cli->scenario->ranks != 0 || cli->scenario->cluster != NULL) {
        g_autoptr(LhSetup) setup = lh_setup_new(cli->scenario, error);
        GArray *one;
        uint64_t ranks;

        if (setup == NULL)
            return NULL;
        ranks = setup->params.ranks;
        one = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        g_array_append_val(one, ranks);
        return one;
    }
    return lh_setting_parse_ranges("--ranks", RANKS_DEFAULT, error);
}

static bool
verify_schedules(const LhCli *cli, Report *report, GError **error)
{
    static const LhPass passes[] = { LH_PASS_FWD, LH_PASS_BWD, LH_PASS_BOTH };
    g_autoptr(GPtrArray) schedules = lh_setup_schedules(cli->scenario, error);
    g_autoptr(GArray) ranks = schedules == NULL ? NULL : choose_ranks(cli, error);

    if (ranks == NULL)
        return false;
    for (guint i = 0; i < schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(schedules, i);

        for (guint pass = 0; pass < G_N_ELEMENTS(passes); pass++) {
            if (cli->scenario->pass >= 0 && (LhPass)(cli->scenario->pass + 1) != passes[pass])
                continue;
            if (!check_schedule(report, new_line(report, schedule->name, passes[pass]), schedule,
                                ranks, error))
                return false;
        }
    }
    return true;
}

static bool
verify_all(const LhCli *cli, Report *report, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(LhProgram) program = lh_setup_load_program(cli->scenario, &cause);
    g_autoptr(LhModel) model = NULL;

    if (cause != NULL) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return false;
    }
    if (program != NULL) {
        if (cli->ranks != NULL) {
            g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                        "--ranks: the schedule file %s says this itself; leave it out",
                        cli->scenario->schedule_file);
            return false;
        }
        check(new_line(report, cli->scenario->schedule_file, program->params.pass), program);
    }
    if (program != NULL && cli->scenario->schedule == NULL)
        return true;
    model = lh_setup_load_model(cli->scenario, error);
    report->model = model;
    return model != NULL && verify_schedules(cli, report, error);
}

static int
run(LhCli *cli, GError **error)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(line_free);
    g_autoptr(GString) out = g_string_new(NULL);
    Report report = { .lines = lines, .scenario = cli->scenario };

    if (!verify_all(cli, &report, error))
        return LH_ERROR_INPUT;
    print(cli, &report, out);
    if (!lh_cli_write(cli, out, error))
        return LH_ERROR_RUNTIME;
    return all_proven(&report) ? 0 : LH_ERROR_NO;
}

const LhCommand lh_command_verify = {
    .name = "verify",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary =
        "Proves schedules correct: matching, no deadlock, no race, coverage, memory, closed forms.",
    .details = "For each schedule and pass and every number of ranks asked for, with no floating "
               "point: every send has\n"
               "its receive, no timing can deadlock, no two accesses race, each rank ends with "
               "exactly the (query, key)\n"
               "pairs of the mask, nothing is leaked, and bytes, flops and peak memory equal their "
               "closed forms. The\n"
               "counts are of what was checked, over all numbers of ranks. Exit status 1 if "
               "anything is not proven.\n\n"
               "  longhaul verify\n"
               "  longhaul verify --schedule zigzag --ranks 1-16,24 --pass bwd\n"
               "  longhaul verify --schedule-file mine.schedule.json\n",
    .scenario = true,
    .options = options,
    .run = run,
};
