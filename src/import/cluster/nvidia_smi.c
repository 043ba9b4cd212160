/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the matrix of nvidia-smi topo -m: the NVLinks between GPUs, the distance of NICs, and which
 * GPUs share a PCIe switch or a socket. On nodes with NVSwitch the links between two GPUs are those
 * to the switch. CPU affinities give the sockets of GPUs that NVLink joins.
 */
#include "import/cluster/node_shape.h"
#include "import/cluster/pcie_tree.h"

#include <string.h>

#define COLUMNS_MAX (2 * LH_TOOL_GPUS_MAX)
#define SAME 0 /* cells: this, a path's index, or NVLINK + number of links */
#define NVLINK 100

/* From near to far. Drivers before 2018 print SOC for SYS. */
static const char *const paths[] = { "X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC" };
#define APART 5     /* SYS, index in paths */
#define OF_SWITCH 2 /* PXB, the last path within switches */
#define OF_SOCKET 4 /* NODE */

typedef struct {
    GArray *labels; /* of LhToolWord: column labels */
    GArray *gpus;   /* of guint: indices of GPU columns */
    GArray *nics;   /* indices of the other columns */
    uint32_t *cells;
    GArray *nodes; /* of LhToolWord: CPUs of each row; empty: unknown */
    bool affinity; /* there is a column of CPUs */
    guint rows;
    bool legend_pix, legend_nvlink; /* the legend has these entries; NVLink comes last */
} Matrix;

static bool
is_gpu(LhToolWord word)
{
    uint64_t number;

    return lh_tool_numbered(word, "GPU", &number);
}

/* Index of a path in the table; its length if the word is not a path. */
static guint
find_path(LhToolWord word)
{
    guint i = 0;

    while (i < G_N_ELEMENTS(paths) && !lh_tool_is(word, paths[i]))
        i++;
    return i;
}

/* Words of the -p2p matrix. */
static bool
is_of_p2p(LhToolWord word)
{
    static const char *const states[] = { "OK", "NS", "CNS", "GNS", "TNS", "U" };

    for (guint i = 0; i < G_N_ELEMENTS(states); i++) {
        if (lh_tool_is(word, states[i]))
            return true;
    }
    return false;
}

/* Numbers, and names of other vendors' links. */
static bool
is_of_others(LhToolWord word)
{
    uint64_t number;

    return lh_tool_uint(word, &number) || lh_tool_is(word, "XGMI") || lh_tool_is(word, "PCIE") ||
           lh_tool_is(word, "HCCS") || lh_tool_is(word, "MX");
}

/* Whether the line is the header: names of GPUs and NICs (NIC0, mlx5_bond_0, roce0). Rows have a
 * path after their label. */
static bool
is_header(const LhToolReader *r)
{
    const LhToolWord second = lh_tool_word(r, 1);
    uint64_t number;

    return lh_tool_is(lh_tool_word(r, 0), "GPU0") && second.length > 0 &&
           find_path(second) == G_N_ELEMENTS(paths) && !lh_tool_is(second, "N/A") &&
           !lh_tool_numbered(second, "NV", &number) && !is_of_p2p(second) && !is_of_others(second);
}

/* Whether the line is the row of GPU0. */
static bool
is_first_row(const LhToolReader *r)
{
    return lh_tool_is(lh_tool_word(r, 0), "GPU0") && lh_tool_is(lh_tool_word(r, 1), "X");
}

static bool
is_matrix(const LhToolReader *r)
{
    return is_header(r) || is_first_row(r);
}

static bool
read_header(LhToolReader *r, Matrix *m)
{
    for (guint i = 0; i < r->words->len; i++) {
        const LhToolWord label = lh_tool_word(r, i);

        m->affinity = lh_tool_is(label, "CPU");
        if (m->affinity)
            break;
        if (label.length > LH_TOOL_NAME_BYTES_MAX)
            return lh_text_fail(&r->text, label.at, "a name of more than %d bytes",
                                LH_TOOL_NAME_BYTES_MAX);
        g_array_append_val(is_gpu(label) ? m->gpus : m->nics, i);
        g_array_append_val(m->labels, label);
    }
    if (m->gpus->len > LH_TOOL_GPUS_MAX || m->nics->len > LH_TOOL_GPUS_MAX)
        return lh_text_fail(&r->text, lh_tool_word(r, 0).at, "%u GPUs and %u NICs; allowed: %d",
                            m->gpus->len, m->nics->len, LH_TOOL_GPUS_MAX);
    m->cells = g_new0(uint32_t, (gsize)m->labels->len * m->labels->len);
    return true;
}

static bool
read_cell(LhToolReader *r, LhToolWord word, uint32_t *cell)
{
    g_autofree char *text = lh_tool_text(word);
    uint64_t links;

    *cell = MIN(find_path(word), APART);
    if (find_path(word) < G_N_ELEMENTS(paths))
        return true;
    *cell = LH_TOOL_FAR;
    if (lh_tool_is(word, "N/A"))
        return true;
    if (lh_tool_numbered(word, "NV", &links) && links > 0 && links <= LH_TOOL_NVLINKS_MAX) {
        *cell = NVLINK + (uint32_t)links;
        return true;
    }
    if (is_of_p2p(word))
        return lh_text_fail(
            &r->text, word.at,
            "\"%s\" is output of nvidia-smi topo -p2p; give the output of nvidia-smi topo -m",
            text);
    if (is_of_others(word))
        return lh_text_fail(
            &r->text, word.at,
            "\"%s\" is output of a tool for other vendors' GPUs, such as rocm-smi --showtopo, "
            "which is not supported; allowed: the output of nvidia-smi topo -m",
            text);
    return lh_text_fail(
        &r->text, word.at,
        "\"%s\" is not a path; allowed: X, PIX, PXB, PHB, NODE, SYS, SOC, N/A, or NV1 to NV%d",
        text, LH_TOOL_NVLINKS_MAX);
}

static bool
read_matrix_row(LhToolReader *r, Matrix *m)
{
    const guint columns = m->labels->len;
    const LhToolWord label = g_array_index(m->labels, LhToolWord, m->rows);
    const LhToolWord found = lh_tool_word(r, 0);
    g_autofree char *wanted = lh_tool_text(label);
    g_autofree char *text = lh_tool_text(found);

    g_assert(m->cells != NULL);
    if (!lh_tool_same(found, label))
        return lh_text_fail(&r->text, found.at, "\"%s\" where the row of %s should be", text,
                            wanted);
    for (guint i = 0; i < columns; i++) {
        const LhToolWord word = lh_tool_word(r, i + 1);
        uint32_t *cell = &m->cells[m->rows * columns + i];

        if (i + 1 >= r->words->len)
            return lh_text_fail(&r->text, r->text.line_start,
                                "%u paths in the row of %s; allowed: %u, one for each column", i,
                                wanted, columns);
        if (!read_cell(r, word, cell))
            return false;
        if ((*cell == SAME) != (i == m->rows))
            return lh_text_fail(&r->text, word.at,
                                "the row of %s has X in another column than its own", wanted);
    }
    m->rows++;
    {
        const LhToolWord node = lh_tool_word(r, columns + 1);

        g_array_append_val(m->nodes, node);
    }
    return true;
}

/* Whether the matrix was cut before the rows of its NICs: the current line, if any, is not one of
 * them. */
static bool
has_gpu_rows_alone(const LhToolReader *r, const Matrix *m)
{
    const guint gpus = m->gpus->len;

    if (m->rows == 0 || m->rows != gpus || g_array_index(m->gpus, guint, gpus - 1) != gpus - 1)
        return false;
    for (guint i = 0; r->words->len > 0 && i < m->labels->len; i++) {
        if (lh_tool_same(lh_tool_word(r, 0), g_array_index(m->labels, LhToolWord, i)))
            return false;
    }
    return true;
}

/* Fills rows of NICs from those of GPUs; paths between NICs are not used. */
static void
fill_nic_rows(Matrix *m)
{
    const guint columns = m->labels->len;

    for (; m->rows < columns; m->rows++) {
        for (guint i = 0; i < columns; i++)
            m->cells[m->rows * columns + i] =
                i < m->gpus->len ? m->cells[i * columns + m->rows] : SAME;
    }
}

static bool
check_symmetry(LhToolReader *r, const Matrix *m, guint line)
{
    const guint columns = m->labels->len;

    for (guint a = 0; a < columns; a++) {
        for (guint b = 0; b < a; b++) {
            g_autofree char *one = lh_tool_text(g_array_index(m->labels, LhToolWord, a));
            g_autofree char *other = lh_tool_text(g_array_index(m->labels, LhToolWord, b));

            if (m->cells[a * columns + b] == m->cells[b * columns + a])
                continue;
            r->text.line = line;
            return lh_text_fail(&r->text, r->text.line_start,
                                "the path from %s to %s differs from the way back", one, other);
        }
    }
    return true;
}

static uint32_t
reach_of_cell(uint32_t cell)
{
    return cell > APART        ? LH_TOOL_UNSAID
           : cell <= OF_SWITCH ? LH_TOOL_ON_SWITCH
           : cell <= OF_SOCKET ? LH_TOOL_ON_SOCKET
                               : LH_TOOL_BEYOND;
}

/* First GPU with the CPUs of GPU @g; UINT32_MAX if unknown. */
static uint32_t
node_of(const Matrix *m, guint g)
{
    const LhToolWord *nodes = (const LhToolWord *)(const void *)m->nodes->data;
    const LhToolWord node = nodes[g_array_index(m->gpus, guint, g)];
    guint first = 0;

    if (!m->affinity || node.length == 0 || lh_tool_is(node, "N/A"))
        return UINT32_MAX;
    while (!lh_tool_same(nodes[g_array_index(m->gpus, guint, first)], node))
        first++;
    return first;
}

/* Adds the PCIe distances of the cells. */
static bool
add_reaches(LhToolReader *r, const Matrix *m, guint line)
{
    const guint gpus = m->gpus->len;
    g_autofree uint32_t *reach = g_new(uint32_t, (gsize)gpus * gpus);
    g_autofree uint32_t *node = g_new(uint32_t, gpus);

    for (guint g = 0; g < gpus; g++) {
        const uint32_t *row = &m->cells[g_array_index(m->gpus, guint, g) * m->labels->len];

        for (guint h = 0; h < gpus; h++)
            reach[g * gpus + h] = reach_of_cell(row[g_array_index(m->gpus, guint, h)]);
        node[g] = node_of(m, g);
    }
    return lh_tool_add_reaches(r, gpus, reach, node, line);
}

/* Names of the NICs; caller frees. */
static char **
names_in_columns(const Matrix *m)
{
    char **names = g_new0(char *, m->nics->len + 1);

    for (guint n = 0; n < m->nics->len; n++)
        names[n] =
            lh_tool_text(g_array_index(m->labels, LhToolWord, g_array_index(m->nics, guint, n)));
    return names;
}

static bool
conclude_matrix(LhToolReader *r, const Matrix *m, guint line)
{
    const guint gpus = m->gpus->len, nics = m->nics->len;
    g_autofree uint32_t *links = g_new0(uint32_t, (gsize)gpus * gpus);
    g_autofree uint32_t *distance = g_new0(uint32_t, (gsize)gpus * nics + 1);
    g_auto(GStrv) names = names_in_columns(m);
    const LhToolShape shape = { .gpus = gpus,
                                .nics = nics,
                                .links = links,
                                .distance = distance,
                                .apart = APART,
                                .names = names };

    g_assert(m->cells != NULL);
    for (guint g = 0; g < gpus; g++) {
        const uint32_t *row = &m->cells[g_array_index(m->gpus, guint, g) * m->labels->len];

        for (guint h = 0; h < gpus; h++) {
            const uint32_t cell = row[g_array_index(m->gpus, guint, h)];

            links[g * gpus + h] = cell > NVLINK && cell < LH_TOOL_FAR ? cell - NVLINK : 0;
        }
        for (guint n = 0; n < nics; n++)
            distance[g * nics + n] = row[g_array_index(m->nics, guint, n)];
    }
    return lh_tool_add_shape(r, &shape, line) && add_reaches(r, m, line);
}

/* Reads the rows and the legend. */
static bool
read_matrix_lines(LhToolReader *r, Matrix *m, guint *line)
{
    for (;;) {
        bool more;

        if (!lh_tool_next(r, &more))
            return false;
        if (!more)
            return true;
        if (m->labels->len == 0) {
            if (is_first_row(r))
                return lh_text_fail(&r->text, r->text.line_start,
                                    "a matrix without its header of column names: GPU0, GPU1, ..., "
                                    "NIC0, ..., CPU Affinity");
            if (!is_header(r))
                continue;
            *line = r->text.line;
            if (!read_header(r, m))
                return false;
        } else if (m->rows == m->labels->len && is_header(r)) {
            return lh_text_fail(&r->text, r->text.line_start,
                                "a second matrix; give one file for each node");
        } else if (r->words->len > 0 && m->rows < m->labels->len) {
            if (has_gpu_rows_alone(r, m))
                fill_nic_rows(m);
            else if (!read_matrix_row(r, m))
                return false;
        }
        m->legend_pix = m->legend_pix || (lh_tool_is(lh_tool_word(r, 0), "PIX") &&
                                          lh_tool_is(lh_tool_word(r, 1), "="));
        m->legend_nvlink = m->legend_nvlink || lh_tool_is(lh_tool_word(r, 0), "NV#");
    }
}

static bool
read_matrix(LhToolReader *r, Matrix *m)
{
    guint line = 1;

    if (!read_matrix_lines(r, m, &line))
        return false;
    r->text.line_start = r->text.at;
    g_array_set_size(r->words, 0);
    if (has_gpu_rows_alone(r, m))
        fill_nic_rows(m);
    if (m->rows < m->labels->len) {
        g_autofree char *wanted = lh_tool_text(g_array_index(m->labels, LhToolWord, m->rows));

        return lh_text_fail(&r->text, r->text.at, "the file ends before the row of %s", wanted);
    }
    if (m->legend_pix && !m->legend_nvlink) {
        r->text.line = line;
        return lh_text_fail(&r->text, r->text.line_start,
                            "the legend has no NVLink, so this is output of nvidia-smi topo -mp; "
                            "give the output of nvidia-smi topo -m");
    }
    return check_symmetry(r, m, line) && conclude_matrix(r, m, line);
}

static bool
read_smi(LhToolReader *r)
{
    g_autoptr(GArray) labels = g_array_new(FALSE, FALSE, sizeof(LhToolWord));
    g_autoptr(GArray) gpus = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) nics = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) nodes = g_array_new(FALSE, FALSE, sizeof(LhToolWord));
    Matrix m = { .labels = labels, .gpus = gpus, .nics = nics, .nodes = nodes };
    const bool ok = read_matrix(r, &m);

    g_free(m.cells);
    return ok;
}

const LhToolFormat lh_tool_smi = { "nvidia-smi topo -m", is_matrix, read_smi };
