/*
 * longhaul show: a schedule's page, or its program.
 */
#include "base/error.h"
#include "cli/command.h"
#include "plan/setup.h"

#include <stddef.h>

#define MATRIX_RANKS_MAX 64u

static const LhField options[] = {
    { .name = "format",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhCli, format),
      .choices = lh_format_names,
      .description =
          "json: the explicit program; table, csv, md: what each rank does at each step; default: "
          "the schedule's page." },
    LH_CLI_OUTPUT,
    { .name = NULL },
};

/* --- the matrix of steps and ranks --------------------------------------------------------------
 */

typedef struct {
    uint8_t phase;
    uint32_t step;
} StepKey;

/* Cells of one rank: StepKey -> GString. Keys are put in order when the table is made. */
typedef struct {
    GArray *keys;     /* of StepKey, over all ranks, sorted, each once */
    GPtrArray *cells; /* of GHashTable *: one for each rank, key as pointer -> GString * */
} Matrix;

static gpointer
pack_key(StepKey key)
{
    return (gpointer)(((guintptr)key.phase << 32) | key.step);
}

static void
string_free(gpointer text)
{
    g_string_free(text, TRUE);
}

static GString *
cell_of(Matrix *m, uint32_t rank, StepKey key)
{
    GHashTable *cells = g_ptr_array_index(m->cells, rank);
    GString *cell = g_hash_table_lookup(cells, pack_key(key));

    if (cell != NULL)
        return cell;
    cell = g_string_new(NULL);
    g_hash_table_insert(cells, pack_key(key), cell);
    for (guint i = 0; i < m->keys->len; i++) {
        const StepKey *known = &g_array_index(m->keys, StepKey, i);

        if (known->phase == key.phase && known->step == key.step)
            return cell;
    }
    g_array_append_val(m->keys, key);
    return cell;
}

static void
append_word(GString *cell, const char *word)
{
    if (cell->len > 0)
        g_string_append_c(cell, ' ');
    g_string_append(cell, word);
}

static void
add_parts(GString *cell, const LhOp *op, const LhOpBuffer *buffer)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        g_autofree char *word = g_strdup_printf("%c%u", part->send ? '>' : '<', part->peer);

        append_word(cell, word);
    }
}

static void
add_op(Matrix *m, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer)
{
    const StepKey key = { op->phase, op->step };

    if (op->kind == LH_OP_EXCHANGE) {
        add_parts(cell_of(m, rank, key), op, buffer);
    } else if (op->kind == LH_OP_COLLECTIVE) {
        append_word(cell_of(m, rank, key), lh_collective_names[op->collective.kind]);
    } else if (op->kind == LH_OP_SYNC) {
        append_word(cell_of(m, rank, key), "wait");
    } else if (op->kind == LH_OP_COMPUTE) {
        const LhEffect effect = lh_kernels[op->compute.kernel]->effect;
        const bool full = op->compute.args.mask == LH_MASK_FULL;

        if (effect == LH_EFFECT_ATTEND)
            append_word(cell_of(m, rank, key), full ? "F" : "f");
        else if (effect == LH_EFFECT_ATTEND_GRAD)
            append_word(cell_of(m, rank, key), full ? "B" : "b");
        else if (effect == LH_EFFECT_ADD)
            append_word(cell_of(m, rank, key), "+");
    }
}

static int
by_key(gconstpointer a, gconstpointer b)
{
    const StepKey *x = a;
    const StepKey *y = b;

    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static void
read_program(Matrix *m, const LhProgram *program)
{
    LhOpBuffer buffer = { 0 };

    for (uint32_t rank = 0; rank < program->params.ranks; rank++) {
        LhCursor cursor;

        g_ptr_array_add(m->cells, g_hash_table_new_full(NULL, NULL, NULL, string_free));
        lh_cursor_init(&cursor, program, rank);
        while (lh_cursor_step(&cursor, &buffer)) {
            for (uint32_t i = 0; i < buffer.ops_count; i++)
                add_op(m, rank, &buffer.ops[i], &buffer);
        }
    }
    lh_op_buffer_clear(&buffer);
    g_array_sort(m->keys, by_key);
}

static LhTable *
make_matrix(const LhProgram *program)
{
    LhTable *table = lh_table_new();
    g_autoptr(GArray) keys = g_array_new(FALSE, FALSE, sizeof(StepKey));
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func((GDestroyNotify)g_hash_table_unref);
    Matrix m = { keys, cells };

    read_program(&m, program);
    lh_table_column(table, "step", "step", NULL, false);
    for (uint32_t rank = 0; rank < program->params.ranks; rank++) {
        g_autofree char *title = g_strdup_printf("rank %u", rank);

        lh_table_column(table, title, title, NULL, false);
    }
    for (guint i = 0; i < keys->len; i++) {
        const StepKey *key = &g_array_index(keys, StepKey, i);

        lh_table_row(table);
        lh_table_cell_printf(table, "%s %u", lh_phase_names[key->phase], key->step);
        for (uint32_t rank = 0; rank < program->params.ranks; rank++) {
            const GString *cell =
                g_hash_table_lookup(g_ptr_array_index(cells, rank), pack_key(*key));

            lh_table_cell(table, cell != NULL ? cell->str : ".", NULL);
        }
    }
    return table;
}

static bool
print_matrix(const LhProgram *program, LhFormat format, GString *out, GError **error)
{
    g_autoptr(LhTable) table = NULL;

    if (program->params.ranks > MATRIX_RANKS_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "show: a table of %u ranks is too wide; at most %u", program->params.ranks,
                    MATRIX_RANKS_MAX);
        return false;
    }
    table = make_matrix(program);
    lh_table_print(table, format, out);
    if (format == LH_FORMAT_TABLE)
        g_string_append(
            out,
            "\nF forward, B backward of a full block, f and b of a masked one; + merge or add; "
            ">r send to, <r receive from rank r\n");
    return true;
}

/* --- the page -----------------------------------------------------------------------------------
 */

static void
print_closed_form(const LhProgramParams *p, const char *name,
                  uint64_t (*form)(const LhProgramParams *p, uint32_t rank), bool bytes,
                  GString *out)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    g_autofree char *low = NULL;
    g_autofree char *high = NULL;

    if (form == NULL)
        return;
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        least = MIN(least, form(p, rank));
        most = MAX(most, form(p, rank));
    }
    low = lh_format_count(least);
    high = lh_format_count(most);
    if (least == most)
        g_string_append_printf(out, "  %-16s %s%s on every rank\n", name, low,
                               bytes ? " bytes" : "");
    else
        g_string_append_printf(out, "  %-16s %s to %s%s\n", name, low, high, bytes ? " bytes" : "");
}

static void
print_page(const LhSchedule *schedule, const LhProgramParams *p, GString *out)
{
    g_string_append_printf(out, "%s: %s\n\n%s", schedule->name, schedule->summary,
                           schedule->details);
    if (!g_str_has_suffix(schedule->details, "\n"))
        g_string_append_c(out, '\n');
    if (p == NULL)
        return;
    g_string_append_printf(out, "\nClosed forms here (%u ranks, %s):\n", p->ranks,
                           lh_pass_names[p->pass - 1]);
    print_closed_form(p, "bytes sent", schedule->closed.bytes_sent, true, out);
    print_closed_form(p, "attention flops", schedule->closed.flops, false, out);
    print_closed_form(p, "peak memory", schedule->closed.peak_bytes, true, out);
}

/* --- the command --------------------------------------------------------------------------------
 */

static bool
choose(const LhCli *cli, const LhSchedule **schedule, LhProgram **program, GError **error)
{
    g_autoptr(GPtrArray) schedules = NULL;
    g_autoptr(GError) cause = NULL;

    *schedule = NULL;
    *program = lh_setup_load_program(cli->scenario, &cause);
    if (cause != NULL) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return false;
    }
    if (*program != NULL)
        return true;
    if (cli->arguments->len > 0) {
        *schedule = lh_schedule_find(g_ptr_array_index(cli->arguments, 0), error);
        return *schedule != NULL;
    }
    if (cli->scenario->schedule == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "show: no schedule: name one; see longhaul list schedules");
        return false;
    }
    schedules = lh_setup_schedules(cli->scenario, error);
    if (schedules != NULL)
        *schedule = g_ptr_array_index(schedules, 0);
    return schedules != NULL;
}

/* Ranks as the scenario says: of the cluster, if need be. */
static bool
find_params(const LhCli *cli, LhProgramParams *params, GError **error)
{
    g_autoptr(LhModel) model = NULL;

    if (cli->scenario->ranks == 0) {
        g_autoptr(LhSetup) setup = lh_setup_new(cli->scenario, error);

        if (setup == NULL)
            return false;
        *params = setup->params;
        return true;
    }
    model = lh_setup_load_model(cli->scenario, error);
    return model != NULL &&
           lh_setup_params(cli->scenario, model, (uint32_t)cli->scenario->ranks, params, error);
}

static int
run(LhCli *cli, GError **error)
{
    const LhSchedule *schedule = NULL;
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    const bool sized = cli->scenario->ranks != 0 || cli->scenario->cluster != NULL;
    LhProgramParams params;

    if (!choose(cli, &schedule, &program, error))
        return LH_ERROR_INPUT;
    if (program == NULL && cli->format < 0 && !sized) {
        print_page(schedule, NULL, out);
        return lh_cli_write(cli, out, error) ? 0 : LH_ERROR_RUNTIME;
    }
    if (program == NULL) {
        if (!find_params(cli, &params, error))
            return LH_ERROR_INPUT;
        program = lh_program_new(schedule, &params, error);
        if (program == NULL)
            return LH_ERROR_NO;
    }
    if (schedule != NULL && cli->format < 0) {
        print_page(schedule, &params, out);
    } else if (lh_cli_format(cli) == LH_FORMAT_JSON) {
        if (!lh_program_write(program, out, error))
            return LH_ERROR_NO;
    } else if (!print_matrix(program, lh_cli_format(cli), out, error)) {
        return LH_ERROR_NO;
    }
    return lh_cli_write(cli, out, error) ? 0 : LH_ERROR_RUNTIME;
}

const LhCommand lh_command_show = {
    .name = "show",
    .arguments = "[SCHEDULE] [SCENARIO] [OPTIONS]",
    .summary = "A schedule's page, its steps, or its whole program.",
    .details = "  longhaul show zigzag\n"
               "  longhaul show dfa-balanced --ranks 8 --pass fwd --format table\n"
               "  longhaul show ring --ranks 4 --format json -o ring.schedule.json\n",
    .scenario = true,
    .options = options,
    .arguments_max = 1,
    .run = run,
};
