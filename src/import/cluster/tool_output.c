/* See tool_output.h: which tool printed a file, its lines and words, and what several files say. */
#include "import/cluster/tool_output.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "import/cluster/pcie_tree.h"

#include <math.h>
#include <string.h>

#define SOURCE_NAME_BYTES_MAX 100 /* of a file's name, in a source */
#define MARK "\xef\xbb\xbf"       /* of UTF-8, which some editors put first */
#define ALIKE 0.1                 /* two measurements that differ by less do not contradict */

/* What a value is called, and how it is written. */
typedef struct {
    const char *name;
    enum { PLAIN, RATE, TIME, SHAPE } form;
} Kind;

static const Kind told_kinds[LH_TOOL_KINDS] = {
    [LH_TOOL_GPUS] = { "the number of GPUs of a node", PLAIN },
    [LH_TOOL_HOSTS] = { "the number of hosts of a node", PLAIN },
    [LH_TOOL_SCALE_UP] = { "what joins the GPUs of a node", SHAPE },
    [LH_TOOL_NVLINKS] = { "the number of NVLinks of a GPU", PLAIN },
    [LH_TOOL_CAPABILITY] = { "the compute capability of the GPUs", PLAIN },
    [LH_TOOL_PEER_RATE] = { "the bandwidth between GPUs of a node", RATE },
    [LH_TOOL_PEER_LATENCY] = { "the latency between GPUs of a node", TIME },
    [LH_TOOL_PCIE_RATE] = { "the bandwidth of a GPU's PCIe link", RATE },
    [LH_TOOL_NICS] = { "the number of NICs next to the GPUs of a node", PLAIN },
    [LH_TOOL_NICS_JOINED] = { "the number of NICs of each GPU", PLAIN },
    [LH_TOOL_NIC_WIRE] = { "the wire's rate of a NIC", RATE },
    [LH_TOOL_NIC_RATE] = { "the bandwidth of a NIC", RATE },
    [LH_TOOL_NIC_LATENCY] = { "the latency of a NIC", TIME },
    [LH_TOOL_ROUTE_RATE] = { "the bandwidth between GPUs of two nodes", RATE },
    [LH_TOOL_ROUTE_LATENCY] = { "the latency between GPUs of two nodes", TIME },
    [LH_TOOL_RINGS_RATE] = { "the bandwidth of collectives at a node", RATE },
    [LH_TOOL_NODES] = { "the number of nodes", PLAIN },
    [LH_TOOL_NODES_PER_LEAF] = { "the number of nodes of a leaf switch", PLAIN },
};

/* --- words --------------------------------------------------------------------------------------
 */

LhToolWord
lh_tool_word(const LhToolReader *r, guint index)
{
    const LhToolWord none = { r->text.at, 0 };

    return index < r->words->len ? g_array_index(r->words, LhToolWord, index) : none;
}

bool
lh_tool_is(LhToolWord word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

bool
lh_tool_begins(LhToolWord word, const char *text)
{
    const gsize length = strlen(text);

    return word.length >= length && memcmp(word.at, text, length) == 0;
}

bool
lh_tool_same(LhToolWord a, LhToolWord b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

bool
lh_tool_line_has(const LhToolReader *r, const char *text)
{
    const char *const begin = r->text.line_start;

    return g_strstr_len(begin, r->text.at - begin, text) != NULL;
}

char *
lh_tool_text(LhToolWord word)
{
    return g_utf8_make_valid(word.at, (gssize)MIN(word.length, LH_TOOL_NAME_BYTES_MAX));
}

bool
lh_tool_uint(LhToolWord word, uint64_t *value)
{
    return lh_tool_numbered(word, "", value);
}

bool
lh_tool_numbered(LhToolWord word, const char *prefix, uint64_t *value)
{
    const gsize from = strlen(prefix);
    uint64_t number = 0;

    if (!lh_tool_begins(word, prefix) || word.length == from)
        return false;
    for (gsize i = from; i < word.length; i++) {
        const char c = word.at[i];

        if (!g_ascii_isdigit(c) || number > (UINT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (uint64_t)(c - '0');
    }
    *value = number;
    return true;
}

bool
lh_tool_double(LhToolWord word, double *value)
{
    char text[40];
    char *end;
    double number;

    if (word.length == 0 || word.length >= sizeof(text) ||
        !(g_ascii_isdigit(*word.at) || *word.at == '-'))
        return false;
    memcpy(text, word.at, word.length);
    text[word.length] = '\0';
    if (strspn(text, "0123456789.eE+-") != word.length)
        return false;
    number = g_ascii_strtod(text, &end);
    if (end != text + word.length || !isfinite(number))
        return false;
    *value = number;
    return true;
}

/* --- lines --------------------------------------------------------------------------------------
 */

/* The end of what terminals take for a colour or an underline, "\e[4m"; @at if there is none. */
static const char *
skip_escape(const char *at, const char *end)
{
    const char *to = at + 2;

    if (end - at < 2 || at[0] != '\033' || at[1] != '[')
        return at;
    while (to < end && (g_ascii_isdigit(*to) || *to == ';'))
        to++;
    return to < end && g_ascii_isalpha(*to) ? to + 1 : at;
}

/* Words are what white space and escape sequences leave, without what a launcher put before them.
 */
static bool
cut_words(LhToolReader *r, const char *end)
{
    const char *at = lh_tool_after_prefix(r->text.line_start, end);

    g_array_set_size(r->words, 0);
    while (at < end) {
        const char *const after = skip_escape(at, end);
        LhToolWord word = { after, 0 };

        if (after != at || g_ascii_isspace(*at)) {
            at = after != at ? after : at + 1;
            continue;
        }
        while (at < end && !g_ascii_isspace(*at) && skip_escape(at, end) == at)
            at++;
        word.length = (gsize)(at - word.at);
        if (r->words->len == LH_TOOL_WORDS_MAX)
            return lh_text_fail(&r->text, word.at, "a line of more than %d words",
                                LH_TOOL_WORDS_MAX);
        g_array_append_val(r->words, word);
    }
    return true;
}

bool
lh_tool_next(LhToolReader *r, bool *more)
{
    LhTextReader *t = &r->text;
    const char *end;

    *more = t->at < t->end;
    if (!*more)
        return true;
    if (t->line == LH_TOOL_LINES_MAX)
        return lh_text_fail(t, t->at, "more than %d lines", LH_TOOL_LINES_MAX);
    t->line++;
    t->line_start = t->at;
    end = memchr(t->at, '\n', (gsize)(t->end - t->at));
    end = end == NULL ? t->end : end;
    t->at = MIN(end + 1, t->end);
    if (end - t->line_start > LH_TOOL_LINE_BYTES_MAX)
        return lh_text_fail(t, t->line_start, "a line of more than %d bytes",
                            LH_TOOL_LINE_BYTES_MAX);
    return cut_words(r, end);
}

/* --- what was found -----------------------------------------------------------------------------
 */

char *
lh_tool_source(const LhToolReader *r)
{
    g_autofree char *base = g_path_get_basename(r->text.file);
    g_autofree char *valid = g_utf8_make_valid(base, -1);
    g_autofree char *name =
        g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), (glong)SOURCE_NAME_BYTES_MAX));

    return g_strdup_printf("%s (%s)", r->tool, name);
}

char *
lh_tool_place(const LhToolReader *r, guint line)
{
    return g_strdup_printf("%s:%u", r->text.file, line);
}

/* "24.5 GB/s"; caller frees. */
static char *
write_value(LhToolKind kind, double value)
{
    static const char *const shapes[] = { "no NVLink", "NVSwitch", "NVLink in pairs", "memory" };

    if (told_kinds[kind].form == RATE)
        return lh_format_bandwidth(value);
    if (told_kinds[kind].form == TIME)
        return lh_format_time(lh_time_from_ps(value * (double)LH_PS_PER_S));
    if (told_kinds[kind].form == SHAPE)
        return g_strdup(shapes[(int)value]);
    return g_strdup_printf("%.0f", value);
}

static bool
agree(LhToolKind kind, double a, double b)
{
    const bool measured = told_kinds[kind].form == RATE || told_kinds[kind].form == TIME;

    return measured ? fabs(a - b) <= ALIKE * MAX(a, b) : a == b;
}

const char *
lh_tool_kind_name(LhToolKind kind)
{
    return told_kinds[kind].name;
}

bool
lh_tool_add(LhToolReader *r, LhToolKind kind, guint line, LhToolValue value)
{
    LhToolOutput *told = &r->cluster->told[kind];
    const LhToolSaid said = { kind, lh_tool_source(r) };

    g_array_append_val(r->cluster->said, said);
    if (told->known && told->weight == value.weight && told->ranks == value.ranks &&
        !agree(kind, told->value, value.value)) {
        g_autofree char *here = write_value(kind, value.value);
        g_autofree char *there = write_value(kind, told->value);

        g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:%u: error: %s is %s here, and %s in %s; give files that agree",
                    r->text.file, line, told_kinds[kind].name, here, there, told->place);
        return false;
    }
    if (told->known && told->weight >= value.weight)
        return true;
    g_free(told->source);
    g_free(told->place);
    *told = (LhToolOutput){ true,
                            value.value,
                            value.weight,
                            value.ranks,
                            value.provenance,
                            lh_tool_source(r),
                            lh_tool_place(r, line) };
    return true;
}

/* --- files --------------------------------------------------------------------------------------
 */

static const LhToolFormat *const formats[] = {
    &lh_tool_foreign,    &lh_tool_nccl_xml, &lh_tool_smi,
    &lh_tool_nccl_tests, &lh_tool_perftest, &lh_tool_slurm,
};

/* The first line that one format has decides. NULL with the error set if there is none. */
static const LhToolFormat *
find_format(LhToolReader *r)
{
    bool more;

    while (lh_tool_next(r, &more)) {
        for (gsize i = 0; more && i < G_N_ELEMENTS(formats); i++) {
            if (formats[i]->has_line(r))
                return formats[i];
        }
        if (more)
            continue;
        r->text.line = 1;
        r->text.line_start = r->text.end;
        lh_text_fail(&r->text, r->text.end,
                     "printed by no tool that is known; allowed: nvidia-smi topo -m, NCCL's "
                     "topology XML, nccl-tests, perftest (ib_write_bw), Slurm's topology.conf");
        break;
    }
    return NULL;
}

static void
rewind_text(LhToolReader *r, const char *text)
{
    r->text.at = r->text.line_start = text;
    r->text.line = 0;
}

static bool
check_text(LhToolReader *r, const char *text, gsize length)
{
    const char *bad;

    if (g_utf8_validate_len(text, length, &bad))
        return true;
    r->text.line = 1;
    for (const char *at = text; at < bad; at++) {
        if (*at == '\n') {
            r->text.line++;
            r->text.line_start = at + 1;
        }
    }
    return lh_text_fail(&r->text, bad, "not text in UTF-8");
}

bool
lh_tool_begin(LhToolReader *r)
{
    const char *text = r->text.at;
    gsize length = (gsize)(r->text.end - text);

    if (length > LH_TOOL_BYTES_MAX) {
        g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT, "%s:1: error: larger than %u MiB",
                    r->text.file, LH_TOOL_BYTES_MAX >> 20);
        return false;
    }
    if (length >= strlen(MARK) && memcmp(text, MARK, strlen(MARK)) == 0)
        text += strlen(MARK);
    length = (gsize)(r->text.end - text);
    rewind_text(r, text);
    return check_text(r, text, length);
}

bool
lh_tool_parse(LhToolCluster *cluster, const char *file, const char *text, gsize length,
              GError **error)
{
    g_autoptr(GArray) words = g_array_new(FALSE, FALSE, sizeof(LhToolWord));
    LhToolReader r = { { file, text, text + length, text, 0, error }, cluster, NULL, words };
    const LhToolFormat *format = NULL;

    if (lh_tool_begin(&r)) {
        text = r.text.at;
        format = find_format(&r);
    }
    if (format == NULL)
        return false;
    rewind_text(&r, text);
    r.tool = format->name;
    if (!format->read(&r))
        return false;
    g_ptr_array_add(cluster->sources, lh_tool_source(&r));
    return true;
}

bool
lh_tool_load(LhToolCluster *cluster, const char *path, GError **error)
{
    gsize length;
    g_autofree char *text = lh_input_read(path, LH_TOOL_BYTES_MAX, &length, error);

    return text != NULL && lh_tool_parse(cluster, path, text, length, error);
}

/* --- the whole ----------------------------------------------------------------------------------
 */

void
lh_tool_times_clear(LhCollectiveTimes *row)
{
    lh_json_clear(lh_collective_times_fields, row);
}

static void
clear_said(gpointer said)
{
    g_free(((LhToolSaid *)said)->source);
}

LhToolCluster *
lh_tool_new(void)
{
    LhToolCluster *cluster = g_new0(LhToolCluster, 1);

    cluster->times = g_array_new(FALSE, TRUE, sizeof(LhCollectiveTimes));
    g_array_set_clear_func(cluster->times, (GDestroyNotify)lh_tool_times_clear);
    cluster->said = g_array_new(FALSE, FALSE, sizeof(LhToolSaid));
    g_array_set_clear_func(cluster->said, clear_said);
    cluster->places = g_ptr_array_new_with_free_func(g_free);
    cluster->sources = g_ptr_array_new_with_free_func(g_free);
    cluster->notes = g_ptr_array_new_with_free_func(g_free);
    return cluster;
}

void
lh_tool_free(LhToolCluster *cluster)
{
    if (cluster == NULL)
        return;
    for (int kind = 0; kind < LH_TOOL_KINDS; kind++) {
        g_free(cluster->told[kind].source);
        g_free(cluster->told[kind].place);
    }
    g_array_unref(cluster->times);
    g_array_unref(cluster->said);
    g_ptr_array_unref(cluster->places);
    g_ptr_array_unref(cluster->sources);
    lh_tool_tree_clear(&cluster->tree);
    g_clear_pointer(&cluster->nic_of_gpu, g_array_unref);
    g_ptr_array_unref(cluster->notes);
    g_free(cluster->lost_nvlinks);
    g_free(cluster->unlike_nics);
    g_free(cluster);
}
